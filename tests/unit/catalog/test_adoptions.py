from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.catalog import named, namespaces
from app.catalog.adoptions import adopt_table
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, FilesUnavailable, InvalidMetadata
from app.fileio.files import FileIO
from tests.builders.catalogs import new_warehouse, with_server
from tests.builders.failing_files import FailingFiles
from tests.builders.file_system import identifier, metadata_folder, new_table, tree_on


def test_broken_version_is_named(tmp_path: Path) -> None:
    tree = tree_on(tmp_path)
    namespaces.create_namespace(tree, Namespace(("ns",)), {})
    named.create(tree, new_table("ns.t"))
    beside = new_warehouse(tree.server, "rows", f"file://{tmp_path}/tables")
    namespaces.create_namespace(beside, Namespace(("sales",)), {})
    (metadata_folder(tmp_path, "ns.t") / "v2.metadata.json").write_text('{"format-version": 2')

    with pytest.raises(InvalidMetadata, match=r"ns/t/metadata/v2[.]metadata[.]json: Invalid JSON"):
        adopt_table(beside, identifier("sales.t"), f"file://{tmp_path}/tables/ns/t")

    assert beside.find(identifier("sales.t")) is None


def test_store_that_is_silent_after_the_adoption_does_not_make_it_one_that_did_not_happen(
    tmp_path: Path,
) -> None:
    tree = tree_on(tmp_path)
    namespaces.create_namespace(tree, Namespace(("ns",)), {})
    named.create(tree, new_table("ns.t"))
    beside = new_warehouse(tree.server, "rows", f"file://{tmp_path}/tables")
    namespaces.create_namespace(beside, Namespace(("sales",)), {})
    silent = SilentOnce(tree.files, lambda: beside.find(identifier("sales.t")) is not None)

    with pytest.raises(CommitStateUnknown, match=r"is adopted.*table health sales\.t --warehouse rows`"):
        adopt_table(
            with_server(beside, files_of=lambda _warehouse: silent),
            identifier("sales.t"),
            f"file://{tmp_path}/tables/ns/t",
        )

    assert beside.find(identifier("sales.t")) is not None


class SilentOnce(FailingFiles):
    """A store that does not answer any more once something has happened."""

    def __init__(self, files: FileIO, has_happened: Callable[[], bool]) -> None:
        super().__init__(files)
        self._has_happened = has_happened

    def exists(self, location: Location) -> bool:
        if self._has_happened():
            raise FilesUnavailable("the store does not answer")
        return super().exists(location)
