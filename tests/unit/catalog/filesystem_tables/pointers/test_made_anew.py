"""A table is dropped, and one of its name made anew, while another server stands still at some step.

Versions of the new table have the names of the old one's, so what was seen of the old one must not touch it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.catalog import named, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.engine.change.requirements import AssertTableUuid
from app.engine.change.updates import SetProperties
from app.errors import NoSuchTable, RequirementFailed
from tests.builders.catalogs import with_server
from tests.builders.commits import commit_table
from tests.builders.file_system import identifier, metadata_folder, new_table

T = identifier("ns.t")


def mark(catalog: Catalog, name: str, value: str = "here") -> None:
    commit_table(catalog, T, (), [SetProperties(updates={name: value})])


def properties(catalog: Catalog) -> dict[str, str]:
    return dict(catalog.read_now(TABLES, T)[1].properties)


def once_at(wanted: str, deed: Callable[[], None]) -> Callable[[str], None]:
    """Return a step at which something is done by others, the first time that it is come by."""
    left = [deed]

    def step(name: str) -> None:
        if name == wanted and left:
            left.pop()()

    return step


def make_anew(others: Catalog, versions: int) -> None:
    tables.purge_table(others, T)
    named.create(others, new_table("ns.t"))
    for number in range(2, versions + 1):
        mark(others, f"new-{number}")


@pytest.mark.parametrize("versions", [1, 2, 3, 5], ids="the new table is at version {}".format)
def test_slow_commit_takes_no_new_tables_place(tree: Catalog, versions: int) -> None:
    mark(tree, "old")
    uuid = tree.read_now(TABLES, T)[1].uuid
    others = with_server(tree)
    slow = with_server(tree, step=once_at("before_version", lambda: make_anew(others, versions)))

    with pytest.raises(RequirementFailed):
        commit_table(slow, T, [AssertTableUuid(uuid=uuid)], [SetProperties(updates={"ours": "here"})])

    assert properties(tree).keys() >= {f"new-{number}" for number in range(2, versions + 1)}
    assert not properties(tree).keys() & {"old", "ours"}
    mark(tree, "later")
    assert properties(tree).keys() >= {"later", *(f"new-{number}" for number in range(2, versions + 1))}


def test_slow_commit_brings_no_dropped_table_back(tree: Catalog, tmp_path: Path) -> None:
    """As on S3, where a file needs no folder."""
    mark(tree, "old")
    others = with_server(tree)

    def drop() -> None:
        tables.purge_table(others, T)
        metadata_folder(tmp_path, "ns.t").mkdir(parents=True)

    with pytest.raises(NoSuchTable):
        mark(with_server(tree, step=once_at("before_version", drop)), "ours")

    assert not list(metadata_folder(tmp_path, "ns.t").glob("v*"))


@pytest.mark.parametrize("step", ["after_version", "after_hint", "after_put"])
def test_old_versions_are_not_those_of_a_new_table(tree: Catalog, step: str) -> None:
    mark(tree, "write.metadata.delete-after-commit.enabled", "true")
    mark(tree, "write.metadata.previous-versions-max", "1")
    mark(tree, "third")
    mark(tree, "fourth")  # the next commit deletes it
    others = with_server(tree)

    mark(with_server(tree, step=once_at(step, lambda: make_anew(others, 4))), "ours")

    assert properties(tree).keys() >= {"new-2", "new-3", "new-4"}
