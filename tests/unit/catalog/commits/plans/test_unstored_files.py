"""Commits that build on each other before any of their files is stored, as on this machine's disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.commits.appends import Appended, AppendedByReference
from app.catalog.commits.door import land_all
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.engine.appends.appended_files import ReadyFile
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location, SpecId
from app.engine.model.table_metadata import TableMetadata
from app.errors import FilesAlreadyLive
from app.fileio.local import LocalFiles
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import new_warehouse, server_on, with_rules
from tests.builders.racing_writers import live_files, rebasing_table, sent, writer
from tests.builders.tables import DEPARTURES, load_table, table_in


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    root = tmp_path / "wh"
    root.mkdir()
    return new_warehouse(server_on(f"sqlite:///{tmp_path}/local.db", LocalFiles()), root=f"file://{root}")


def appending(catalog: Catalog, name: str, **summary: str) -> Wish[TableMetadata, Appended]:
    location = Location(f"{load_table(catalog).metadata.location}/data/{name}")
    file = DataFile(FileContent.DATA, location, "PARQUET", SpecId(0), (), 10, 100)
    files = [ReadyFile(location, SpecId(0), (), file)]
    return Wish(catalog, [AppendedByReference(DEPARTURES, "main", files, (), tuple(summary.items()))])


def names_in(catalog: Catalog) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in live_files(catalog))


def test_appends_that_do_not_join_find_what_those_before_them_bring(catalog: Catalog) -> None:
    """The guard would have read their manifests, and kept them in memory; it is off here."""
    table_in(catalog, properties={"icetower.guard": "off"})
    wishes = [appending(catalog, "a"), appending(catalog, "b", who="me"), appending(catalog, "c")]
    again = appending(catalog, "b")

    land_all([*wishes, again])

    details = [wish.results()[0].detail for wish in wishes]
    assert len({detail.snapshot_id for detail in details if detail is not None}) == 3
    with pytest.raises(FilesAlreadyLive):
        again.results()
    assert names_in(catalog) == ["a", "b", "c"]


def test_rebases_find_each_others_lists_whatever_the_cache_keeps(catalog: Catalog) -> None:
    server = replace(catalog.server, manifest_cache=ManifestCache(0))
    forgetful = replace(catalog, server=server)
    rebasing_table(forgetful)
    wishes = [Wish(forgetful, [sent(writer(forgetful).append([name]))]) for name in "abcd"]

    land_all(wishes)

    assert [wish.results()[0].rebased for wish in wishes] == [False, True, True, True]
    assert len(live_files(catalog)) == 4


def test_guard_that_may_read_no_more_misses_no_manifest_that_is_not_stored_yet(catalog: Catalog) -> None:
    table_in(catalog, properties={"icetower.guard": "reject"})
    wanted = appending(with_rules(catalog, guard_read_bytes=0), "a")

    land_all([wanted])

    wanted.results()
    assert names_in(catalog) == ["a"]


def test_guard_compares_with_those_before_whatever_the_cache_keeps(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    forgetful = replace(catalog, server=replace(catalog.server, manifest_cache=ManifestCache(0)))
    table_in(forgetful)
    caplog.set_level("INFO", logger="app.catalog.commits.guard")

    land_all([appending(forgetful, "a"), appending(forgetful, "b", who="me")])

    assert names_in(catalog) == ["a", "b"]
    assert "was looked at" not in caplog.text
