"""The manifests of a warehouse's tables: what is corrupt is told so, and copies are kept where they are wanted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import CheckedManifests, TableManifests
from app.engine.model.files.entry_filters import FilterableEntries, live_entries
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.errors import CorruptMetadata, FileMissing, InvalidLocation
from app.fileio.memory import MemoryFiles
from app.formats.manifests.folder import ManifestFolder
from app.formats.manifests.lists import assign_numbers
from app.formats.manifests.source import ManifestCache
from app.formats.manifests.writer import write_manifest
from tests.builders.catalogs import new_warehouse, server_on, with_server
from tests.strategies.manifest_entries import table_of
from tests.unit.engine.documents import table

TABLE = table(2)
ROOT = "s3://bucket/warehouse"
PLACE = Location(f"{ROOT}/t/metadata/m.avro")
FILE = Location(f"{ROOT}/t/data/1.parquet")


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def catalog(tmp_path: Path, files: MemoryFiles) -> Catalog:
    return new_warehouse(server_on(f"sqlite:///{tmp_path}/catalog.db", files), root=ROOT)


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


def test_entries_can_filter_themselves(catalog: Catalog, manifest: ManifestFile) -> None:
    entries = TableManifests(catalog, TABLE).entries(manifest)

    assert isinstance(entries, FilterableEntries)
    assert list(live_entries(entries, lambda partition: partition[0] == 0)) == []


def test_both_decoders_agree_on_values_that_few_can_read(catalog: Catalog, manifest: ManifestFile) -> None:
    assert paths(CheckedManifests(catalog, TABLE), manifest) == [FILE]


def test_both_decoders_read_what_is_fetched_once_whatever_is_kept(
    catalog: Catalog, files: MemoryFiles, manifest: ManifestFile
) -> None:
    fetched: list[Location] = []

    class Counting(MemoryFiles):
        def read(self, location: Location) -> bytes:
            fetched.append(location)
            return files.read(location)

    counting = Counting()
    catalog = with_server(catalog, files_of=lambda _warehouse: counting)
    assert paths(TableManifests(catalog, TABLE), manifest) == [FILE]
    assert fetched == [PLACE]

    assert paths(CheckedManifests(catalog, TABLE), manifest) == [FILE]

    assert fetched == [PLACE, PLACE]


def test_what_is_no_manifest_is_told_as_corrupt(
    catalog: Catalog, files: MemoryFiles, manifest: ManifestFile
) -> None:
    files.delete(PLACE)
    files.write_new(PLACE, b"no Avro")

    with pytest.raises(CorruptMetadata, match=PLACE):
        paths(CheckedManifests(catalog, TABLE), replace(manifest, manifest_length=1))


def test_a_folder_keeps_copies(
    catalog: Catalog, files: MemoryFiles, manifest: ManifestFile, tmp_path: Path
) -> None:
    def started_anew() -> TableManifests:
        folder = ManifestFolder(tmp_path / "copies", 1 << 20)
        another = with_server(catalog, manifest_cache=ManifestCache(1 << 20), manifest_folder=folder)
        return TableManifests(another, TABLE)

    assert paths(started_anew(), manifest) == [FILE]
    files.delete(PLACE)

    assert paths(started_anew(), manifest) == [FILE]
    with pytest.raises(FileMissing):
        paths(TableManifests(catalog, TABLE), manifest)


def test_no_copies_are_made_of_what_nobody_may_believe(
    catalog: Catalog, manifest: ManifestFile, tmp_path: Path
) -> None:
    folder = tmp_path / "copies"
    catalog = with_server(catalog, manifest_folder=ManifestFolder(folder, 1 << 20))

    assert paths(TableManifests(catalog, None), manifest) == [FILE]
    assert not folder.exists()

    assert paths(TableManifests(catalog, TABLE), manifest) == [FILE]
    assert folder.exists()


def test_copies_are_for_those_who_may_read_the_file(
    catalog: Catalog, manifest: ManifestFile, tmp_path: Path
) -> None:
    catalog = with_server(catalog, manifest_folder=ManifestFolder(tmp_path / "copies", 1 << 20))
    paths(TableManifests(catalog, TABLE), manifest)
    stranger = new_warehouse(catalog.server, "stranger", "s3://bucket/elsewhere")

    with pytest.raises(InvalidLocation):
        paths(TableManifests(stranger, TABLE), manifest)


def test_a_manifest_that_is_none_is_corrupt(
    catalog: Catalog, files: MemoryFiles, manifest: ManifestFile
) -> None:
    files.delete(PLACE)
    files.write_new(PLACE, b"x" * manifest.manifest_length)

    with pytest.raises(CorruptMetadata, match=PLACE):
        paths(TableManifests(catalog, TABLE), manifest)
