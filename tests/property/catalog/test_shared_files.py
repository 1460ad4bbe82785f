"""Whatever tables share, or claim to share: nothing that is deleted is reached by a table that is there."""

from __future__ import annotations

import itertools
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.catalog.context.server import Server
from app.fileio.files import FileIO
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles
from app.fileio.schemes import files_for
from tests.builders.queues import work_off_one
from tests.property.catalog.lives import PLACES, Life, OldFiles, ground_on
from tests.servers.s3 import S3Server

CHANGES = [
    "append", "append", "overwrite", "branch_off", "unbranch", "name_any", "name_any", "name_statistics", "guard_off",
    "roll_back", "restore", "register_twin", "register_twin", "register_again", "unregister", "move", "leave_junk",
    "name_junk", "look",
]  # fmt: skip
DELETIONS = ["expire", "expire", "purge", "purge", "drop", "mark"]
EVERYTHING = st.sampled_from([*CHANGES, *DELETIONS])
STEPS = [
    "expired_content_deleted", "expired_manifests_deleted", "purged_content_deleted", "purged_manifests_deleted",
    "orphans_checked",
]  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Where three tables lie, what happens to them, and what happens while files are deleted."""
    return {
        "places": draw(st.tuples(PLACES, PLACES, PLACES)),
        "rounds": draw(st.lists(st.lists(EVERYTHING, min_size=1, max_size=5), min_size=1, max_size=3)),
        "ends": draw(st.tuples(*[st.sampled_from(DELETIONS[:-2])] * 3)),
        "meanwhile": draw(
            st.none() | st.tuples(st.sampled_from(STEPS), st.sampled_from(["name_any", *CHANGES, "purge"]))
        ),
        "numbers": draw(st.lists(st.integers(0, 59), min_size=12, max_size=12)),
    }


class Witness:
    """Sees before and between deletions what is there and what tables reach, and that none of it goes."""

    def __init__(self, life: Life, meanwhile: tuple[str, str] | None) -> None:
        self.life = life
        self.deleted = 0
        self.saved = False
        self._meanwhile = meanwhile
        self._there: set[str] = set()
        self._in_use: set[str] = set()
        life.ground.at_step.append(self.at_step)

    def look(self) -> None:
        self._there = self.life.there()
        self._in_use = self.life.in_use(left=False)

    def check(self) -> None:
        gone = self._there - self.life.there()
        assert gone & self._in_use == set()
        self.deleted += len(gone)

    def at_step(self, name: str) -> None:
        if self._meanwhile is not None and name == self._meanwhile[0]:
            what, self._meanwhile = self._meanwhile[1], None
            self.check()
            self.life.do(what)
            self.look()


def live(life: Life, plan: dict[str, Any]) -> int:
    """Do what a plan says; return how many files were deleted."""
    for name, place in zip("tuv", plan["places"], strict=True):
        life.create(name, place)
    for table in life.tables():
        for _ in range(2):
            life.append(*table)
        life.leave_junk(*table)
    witness = Witness(life, plan["meanwhile"])
    for each, end in zip(plan["rounds"], plan["ends"], strict=False):
        for what in (*each, end):
            life.do(what)
        witness.look()
        while queued := life.queued():
            is_due = work_off_one(life.ground.server)
            witness.check()
            witness.look()
            if not is_due or queued == life.queued():
                break  # it waits: for its lease, for a table that cannot be read, or for files that a twin's purge took
    return witness.deleted


@pytest.fixture(
    params=[
        "memory",
        pytest.param("local", marks=pytest.mark.slow),
        pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.nightly]),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileIO, str, int]:
    """A store, a folder in it, and how many plans are tried there: a file costs more than in memory."""
    match request.param:
        case "memory":
            return MemoryFiles(), "memory:/", settings.default.max_examples if settings.default else 50
        case "local":
            return LocalFiles(), f"file:{tmp_path}", 15
        case _:
            server: S3Server = request.getfixturevalue("s3_server")
            server.create_bucket("shared-files")
            return files_for(server.storage), f"s3://shared-files/{uuid.uuid4()}", 25


def test_no_deletion_takes_what_a_table_reaches(base_server: Server, store: tuple[FileIO, str, int]) -> None:
    files, root, max_examples = store
    deleted: list[int] = []

    @settings(max_examples=max_examples)
    @given(plan=plans())
    def check(plan: dict[str, Any]) -> None:
        ground = ground_on(base_server, OldFiles(files), root)
        deleted.append(live(Life(ground, itertools.cycle(plan["numbers"])), plan))

    check()

    assert sum(map(bool, deleted)) > len(deleted) / 10, "many plans have to delete something to show anything"
