"""Metadata files of views that no commit landed are collected in the end, and no others."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import VIEWS
from app.catalog.context.places.file_names import new_file_uuid
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.views import replace_view
from app.database.schema.rows import metadata_sweeps
from app.engine.change.updates import AddViewVersion, SetCurrentViewVersion
from app.engine.model.ids import Location
from app.errors import FilesBeingDeleted
from app.formats.metadata.names import metadata_folder
from tests.builders.catalogs import catalog_on
from tests.builders.tables import DEPARTURES, view_in, view_version
from tests.unit.catalog.context.test_absent_stores import Killed, killed_at
from tests.unit.catalog.deletions.sweeps.test_metadata_files import DAY_MS, AgedFiles, execute, let_age


@pytest.fixture
def store() -> AgedFiles:
    return AgedFiles()


@pytest.fixture
def catalog(tmp_path: Path, store: AgedFiles) -> Catalog:
    """A view with four commits, made ten days ago."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    view_in(catalog)
    for number in range(4):
        change(catalog, number)
    let_all_age(catalog, store)
    return catalog


def let_all_age(catalog: Catalog, store: AgedFiles) -> None:
    let_age(catalog, 10 * DAY_MS)
    execute(catalog, metadata_sweeps.delete())
    for location in list(store._files):
        store.age(location, 3 * DAY_MS)


def change(catalog: Catalog, number: int) -> None:
    version = view_version(f"SELECT {number}").replace(timestamp_ms=1_000 + number)
    updates = AddViewVersion(view_version=version), SetCurrentViewVersion(view_version_id=-1)
    replace_view(catalog, DEPARTURES, (), updates)


def left(
    catalog: Catalog,
    version: int,
    *,
    file_uuid: str | None = None,
    age_ms: int = 2 * DAY_MS,
    view_uuid: str | None = None,
) -> Location:
    """Write a file of another query on top of the second one, as a killed server would have left it."""
    pointer = catalog.load(VIEWS, DEPARTURES)
    view = catalog.read(VIEWS, pointer)
    killed = view.replace(view_uuid=view_uuid or view.uuid, version_log=view.version_log[:2])
    name = f"{version:05d}-{file_uuid or new_file_uuid(catalog.server)}.metadata.json"
    location = Location(f"{metadata_folder(view.location, view.properties)}/{name}")
    store = catalog.files
    assert isinstance(store, AgedFiles)
    store.write_new(location, killed.to_json())
    store.age(location, age_ms)
    return location


def test_what_killed_commits_to_a_view_left_goes_and_nothing_else(catalog: Catalog, store: AgedFiles) -> None:
    stay = set(store._files)
    stay |= {
        left(catalog, 5),  # of a version that may come yet
        left(catalog, 2, age_ms=0),
        left(catalog, 2, age_ms=11 * DAY_MS),  # older than the view
        left(catalog, 2, file_uuid=str(uuid.uuid4())),  # another catalog's
        left(catalog, 2, view_uuid=str(uuid.uuid4())),  # a view's that was dropped there
    }
    gone = left(catalog, 2)

    assert sweep_one(catalog.server)

    assert set(store._files) == stay
    assert gone not in stay
    assert not sweep_one(catalog.server)


@pytest.mark.parametrize("killed", [1, 2])
def test_files_of_commits_that_were_really_killed_go(catalog: Catalog, store: AgedFiles, killed: int) -> None:
    before = set(store._files)
    for number in range(killed):
        with pytest.raises(Killed):
            change(killed_at(catalog, "before_put"), 10 + number)
    gone = set(store._files) - before
    assert len(gone) == killed
    change(catalog, 20)
    stay = set(store._files) - gone
    let_all_age(catalog, store)

    assert sweep_one(catalog.server)

    assert set(store._files) == stay
    assert named.load(catalog, VIEWS, DEPARTURES).metadata.current_version.representations


def test_files_stay_where_another_catalog_commits_to_the_view(catalog: Catalog, store: AgedFiles) -> None:
    view = named.load(catalog, VIEWS, DEPARTURES).metadata
    entry = view.version_log[-1].replace(timestamp_ms=view.version_log[-1].timestamp_ms + 1)
    theirs = view.replace(version_log=(*view.version_log, entry))
    location = Location(f"{metadata_folder(view.location, {})}/00005-{uuid.uuid4()}.metadata.json")
    store.write_new(location, theirs.to_json())
    left(catalog, 2)
    stay = set(store._files)

    assert sweep_one(catalog.server)

    assert set(store._files) == stay


def test_a_file_of_a_view_that_goes_just_then_cannot_be_registered(
    catalog: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, delete_file, refused = left(catalog, 2), store.delete, list[str]()

    def register_then_delete(location: Location) -> None:
        with pytest.raises(FilesBeingDeleted) as refusal:
            named.register(catalog, VIEWS, DEPARTURES, location, overwrite=True)
        refused.append(str(refusal.value))
        delete_file(location)

    monkeypatch.setattr(store, "delete", register_then_delete)
    assert sweep_one(catalog.server)

    assert len(refused) == 1
    assert not store.exists(gone)
