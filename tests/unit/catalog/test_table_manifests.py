"""The manifests of a warehouse's tables: what is corrupt is told so, and copies are kept where they are wanted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.context import Catalog
from app.catalog.table_manifests import CheckedManifests, TableManifests
from app.database.warehouses import Warehouse
from app.engine.model.entry_filters import FilterableEntries, live_entries
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.errors import CorruptMetadata, FileMissing, InvalidLocation
from app.fileio.memory import MemoryFiles
from app.formats.manifests.folder import ManifestFolder
from app.formats.manifests.lists import assign_numbers
from app.formats.manifests.source import ManifestCache
from app.formats.manifests.writer import write_manifest
from tests.builders.catalogs import catalog_on, warehouse_in
from tests.strategies.manifest_entries import table_of

ROOT = "s3://bucket/warehouse"
PLACE = Location(f"{ROOT}/t/metadata/m.avro")
FILE = Location(f"{ROOT}/t/data/1.parquet")


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def catalog(tmp_path: Path, files: MemoryFiles) -> Catalog:
    return catalog_on(f"sqlite:///{tmp_path}/catalog.db", files)


@pytest.fixture
def warehouse(catalog: Catalog) -> Warehouse:
    return warehouse_in(catalog, root=ROOT)


@pytest.fixture
def manifest(files: MemoryFiles) -> ManifestFile:
    """Return a stored manifest by a date that fastavro's own dates do not reach."""
    schema, spec = table_of(["date", "fixed[5]"], ["identity", "identity"])
    file = DataFile(FileContent.DATA, FILE, "parquet", spec.spec_id, (2**31 - 1, b"\x0a1234"), 1, 1)
    written = write_manifest(
        [ManifestEntry(EntryStatus.ADDED, None, None, None, file)],
        schema=schema,
        spec=spec,
        format_version=2,
        snapshot_id=SnapshotId(1),
    )
    files.write_new(PLACE, written.content)
    (numbered,), _ = assign_numbers([written.at(PLACE)], sequence_number=1)
    return numbered


def paths(source: TableManifests, manifest: ManifestFile) -> list[str]:
    return [entry.file.file_path for entry in source.entries(manifest)]


def test_entries_can_filter_themselves(
    catalog: Catalog, warehouse: Warehouse, manifest: ManifestFile
) -> None:
    entries = TableManifests(catalog, warehouse).entries(manifest)

    assert isinstance(entries, FilterableEntries)
    assert list(live_entries(entries, lambda partition: partition[0] == 0)) == []


def test_both_decoders_agree_on_values_that_few_can_read(
    catalog: Catalog, warehouse: Warehouse, manifest: ManifestFile
) -> None:
    assert paths(CheckedManifests(catalog, warehouse), manifest) == [FILE]


def test_both_decoders_read_what_is_fetched_once_whatever_is_kept(
    catalog: Catalog, warehouse: Warehouse, files: MemoryFiles, manifest: ManifestFile
) -> None:
    fetched: list[Location] = []

    class Counting(MemoryFiles):
        def read(self, location: Location) -> bytes:
            fetched.append(location)
            return files.read(location)

    counting = Counting()
    catalog = replace(catalog, files_of=lambda _warehouse: counting)
    assert paths(TableManifests(catalog, warehouse), manifest) == [FILE]
    assert fetched == [PLACE]

    assert paths(CheckedManifests(catalog, warehouse), manifest) == [FILE]

    assert fetched == [PLACE, PLACE]


def test_what_is_no_manifest_is_told_as_corrupt(
    catalog: Catalog, warehouse: Warehouse, files: MemoryFiles, manifest: ManifestFile
) -> None:
    files.delete(PLACE)
    files.write_new(PLACE, b"no Avro")

    with pytest.raises(CorruptMetadata, match=PLACE):
        paths(CheckedManifests(catalog, warehouse), replace(manifest, manifest_length=1))


def test_a_folder_keeps_copies(
    catalog: Catalog, warehouse: Warehouse, files: MemoryFiles, manifest: ManifestFile, tmp_path: Path
) -> None:
    def started_anew() -> TableManifests:
        folder = ManifestFolder(tmp_path / "copies", 1 << 20)
        another = replace(catalog, manifest_cache=ManifestCache(1 << 20), manifest_folder=folder)
        return TableManifests(another, warehouse)

    assert paths(started_anew(), manifest) == [FILE]
    files.delete(PLACE)

    assert paths(started_anew(), manifest) == [FILE]
    with pytest.raises(FileMissing):
        paths(TableManifests(catalog, warehouse), manifest)


def test_copies_are_for_those_who_may_read_the_file(
    catalog: Catalog, warehouse: Warehouse, manifest: ManifestFile, tmp_path: Path
) -> None:
    catalog = replace(catalog, manifest_folder=ManifestFolder(tmp_path / "copies", 1 << 20))
    paths(TableManifests(catalog, warehouse), manifest)
    stranger = warehouse_in(catalog, "stranger", "s3://bucket/elsewhere")

    with pytest.raises(InvalidLocation):
        paths(TableManifests(catalog, stranger), manifest)


def test_a_manifest_that_is_none_is_corrupt(
    catalog: Catalog, warehouse: Warehouse, files: MemoryFiles, manifest: ManifestFile
) -> None:
    files.delete(PLACE)
    files.write_new(PLACE, b"x" * manifest.manifest_length)

    with pytest.raises(CorruptMetadata, match=PLACE):
        paths(TableManifests(catalog, warehouse), manifest)
