from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.commits.appends import AppendedByReference
from app.catalog.commits.landing import land_one
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.engine.appends.appended_files import ReadyFile
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location, SpecId
from app.errors import CommitStateUnknown, FilesUnavailable
from app.fileio.local import LocalFiles
from tests.builders.file_system import identifier

T = identifier("ns.t")


def test_files_of_an_append_stay_where_nobody_can_say_whether_it_counts(
    tree: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is there: without its manifest list nobody could read the table any more."""
    path = Location(f"{tree.read_now(TABLES, T)[1].location}/data/a.parquet")
    file = DataFile(FileContent.DATA, path, "PARQUET", SpecId(0), (), 10, 100)
    with monkeypatch.context() as patched:
        written = LocalFiles.write_once

        def write_once(self: LocalFiles, location: Location, content: bytes) -> None:
            def silent(_self: LocalFiles, location: Location) -> bool:
                raise FilesUnavailable(f"no answer about {location}")

            written(self, location, content)
            patched.setattr(LocalFiles, "exists", silent)

        patched.setattr(LocalFiles, "write_once", write_once)
        with pytest.raises(CommitStateUnknown):
            land_one(tree, AppendedByReference(T, "main", [ReadyFile(path, SpecId(0), (), file)], ()))

    snapshot = tree.read_now(TABLES, T)[1].current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    assert Path(snapshot.manifest_list.removeprefix("file://")).exists()
