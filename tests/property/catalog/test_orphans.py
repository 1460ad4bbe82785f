"""Whatever tables share, or claim to share: no orphan run deletes a file that a state in use reaches."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.catalog.context.server import Server
from app.errors import IcetowerError
from app.fileio.memory import MemoryFiles
from tests.builders.queues import work_off_one
from tests.property.catalog.lives import PLACES, Ground, Life, OldFiles, ground_on

BEFORE = st.lists(
    st.sampled_from(
        [
            "append", "overwrite", "branch_off", "name_any", "name_junk_and_leave", "roll_back", "expire", "drop",
            "leave_junk", "register_twin", "move",
        ]
    ),
    max_size=4,
)  # fmt: skip
BETWEEN = [
    "append", "overwrite", "branch_off", "unbranch", "name_junk", "name_junk_and_leave", "name_any", "roll_back",
    "restore", "register_twin", "register_again", "expire", "drop", "purge", "move", "switch_off",
]  # fmt: skip
NUMBERS = st.lists(st.integers(0, 59), min_size=12, max_size=12)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "places": draw(st.tuples(PLACES, PLACES, PLACES)),
        "before": draw(BEFORE),
        "named": draw(st.integers(0, 2)),
        "between": draw(st.lists(st.sampled_from(BETWEEN), max_size=3)),
        "at check": draw(st.sampled_from([None, *BETWEEN])),
        "numbers": draw(NUMBERS),
    }


def live(ground: Ground, plan: dict[str, Any]) -> set[str]:
    """Do what a plan says; return what orphan runs deleted."""
    life = Life(ground, itertools.cycle(plan["numbers"]))
    for name, place in zip("tuv", plan["places"], strict=True):
        life.create(name, place)
    for table in life.tables():
        for _ in range(2):
            life.append(*table)
        life.leave_junk(*table)
        life.leave_junk(*table)
    for what in plan["before"]:
        life.do(what)
    for _ in range(plan["named"]):
        life.do("name_junk")
    for table in life.tables():
        with contextlib.suppress(IcetowerError):
            life.mark(*table)
    for what in plan["between"]:
        life.do(what)
    return work_off(life, plan["at check"])


def work_off(life: Life, meanwhile: str | None) -> set[str]:
    """Work off the queue; return what orphan runs deleted."""
    deleted: set[str] = set()
    while queued := life.queued():
        before: list[tuple[set[str], set[str]]] = []

        def look(step: str, before: list[tuple[set[str], set[str]]] = before) -> None:
            if step == "orphans_checked" and not before:
                if meanwhile is not None:
                    life.do(meanwhile)
                before.append((life.there(), life.in_use()))

        life.ground.at_step[:] = [look]
        there = life.there()
        assert work_off_one(life.ground.server)
        if before:  # an orphan run got as far as that
            gone, in_use = before[0][0] - life.there(), before[0][1]
            assert gone & in_use == set()
            deleted |= gone
        elif "orphans" in queued and len(queued) == 1:
            assert there == life.there()
        if queued == life.queued():
            return deleted  # planned anew: it waits for its lease
    return deleted


def test_no_orphan_run_deletes_what_a_table_reaches(base_server: Server) -> None:
    deleted: list[set[str]] = []

    @given(plan=plans())
    def check(plan: dict[str, Any]) -> None:
        deleted.append(live(ground_on(base_server, OldFiles(MemoryFiles()), "memory:/"), plan))

    check()

    assert sum(map(bool, deleted)) > len(deleted) / 10, "many plans have to delete something to show anything"
