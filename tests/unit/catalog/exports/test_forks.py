"""What another catalog, or the database that this one is an old copy of, made of a table: no file of it goes."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from app.catalog import named
from app.catalog.commits.door import land_all
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.places.file_names import new_file_uuid
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import preview_orphans
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.exports import forks
from app.catalog.exports.forks import find_fork
from app.catalog.exports.writing import export_pointers
from app.catalog.past.dropped import Wanted, purge_dropped, undrop
from app.catalog.tables import purge_table
from app.catalog.upkeep.table_health import table_health
from app.catalog.views import ViewCommit, replace_view
from app.database.backups import back_up
from app.database.deletions.metadata_sweeps import KnownFiles, MetadataSweeps
from app.database.schema.rows import pointer_history
from app.engine.change.updates import AddViewVersion, SetCurrentViewVersion, SetProperties, Update
from app.engine.model.ids import Location
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import OrphansRefused
from app.fileio.files import ListedFile, files_in
from app.fileio.local import LocalFiles
from app.recoveries import UndropRefused
from tests.builders.catalogs import START_MS, new_warehouse, server_on, with_server
from tests.builders.table_files import TableFiles
from tests.builders.tables import (
    DEPARTURES,
    append,
    commit_to,
    load_table,
    namespace_in,
    table_in,
    view_in,
    view_version,
)
from tests.unit.catalog.commits.interference import ARRIVALS
from tests.unit.catalog.deletions.sweeps.test_metadata_files import DAY_MS, execute, let_age
from tests.unit.catalog.deletions.test_orphans import make_old, work_off
from tests.unit.catalog.rebuild.rebuilding import rebuild


def append_file(catalog: Catalog, name: str) -> str:
    made = TableFiles(LocalFiles()).snapshot(load_table(catalog).metadata, [name])
    location = commit_to(catalog, *append(made)).location
    assert location is not None
    return location


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    made = new_warehouse(server, root=f"file://{tmp_path}/wh")
    table_in(made)
    append_file(made, "a")
    return made


@pytest.fixture
def other(catalog: Catalog, tmp_path: Path) -> Catalog:
    """Another catalog with a database of its own, at the same root."""
    server = server_on(f"sqlite:///{tmp_path}/other.db", LocalFiles())
    return new_warehouse(server, root=f"file://{tmp_path}/wh")


def backup_of(catalog: Catalog, tmp_path: Path) -> Catalog:
    back_up(f"sqlite:///{tmp_path}/icetower.db", tmp_path / "old.db")
    return replace(catalog, server=server_on(f"sqlite:///{tmp_path}/old.db", LocalFiles()))


def age_all(tmp_path: Path) -> set[Location]:
    files = there(tmp_path)
    for location in files:
        make_old(location)
    return files


def there(tmp_path: Path) -> set[Location]:
    return {file.location for file in LocalFiles().list_files(Location(f"file://{tmp_path}/wh"))}


def test_an_old_backup_finds_no_orphans_among_newer_commits(catalog: Catalog, tmp_path: Path) -> None:
    old = backup_of(catalog, tmp_path)
    append_file(catalog, "b")
    newest = append_file(catalog, "c")
    age_all(tmp_path)
    let_age(old, 30 * DAY_MS)

    with pytest.raises(
        OrphansRefused, match=f"{newest} is a commit to this table that this catalog does not have"
    ):
        preview_orphans(old, DEPARTURES, OrphanWish())

    rebuild(old)
    assert load_table(old).location == newest
    assert preview_orphans(old, DEPARTURES, OrphanWish()).files == {}


def test_an_export_says_that_a_single_commit_has_landed(catalog: Catalog, tmp_path: Path) -> None:
    old = backup_of(catalog, tmp_path)
    newest = append_file(catalog, "b")
    export_pointers(catalog.server, catalog.warehouse)
    age_all(tmp_path)
    let_age(old, 30 * DAY_MS)

    with pytest.raises(OrphansRefused, match=newest):
        preview_orphans(old, DEPARTURES, OrphanWish())


def test_an_old_backup_that_has_gone_on_sweeps_no_newer_commits(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = backup_of(catalog, tmp_path)
    append_file(catalog, "b")
    newest = append_file(catalog, "c")
    for name in "xyz":
        append_file(old, name)
    before = age_all(tmp_path)
    let_age(old, 30 * DAY_MS)

    assert sweep_one(old.server)

    assert there(tmp_path) == before
    assert f"{newest} is a commit to this table that this catalog does not have" in caplog.text


def test_a_purge_leaves_what_another_catalog_has_gone_on_with(
    catalog: Catalog, other: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    location = load_table(catalog).location
    assert location is not None
    purge_table(catalog, DEPARTURES)
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, location)
    newest = append_file(other, "b")
    before = there(tmp_path)

    work_off(catalog)

    assert there(tmp_path) == before
    assert f"{newest} is a commit to this table that this catalog does not have" in caplog.text


def test_an_expiry_deletes_no_file_while_another_catalog_commits_too(
    catalog: Catalog, other: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    location = append_file(catalog, "b")
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, Location(location))
    newest = append_file(other, "c")
    expire_snapshots(catalog, DEPARTURES, ExpiryRequest(ExpiryWish(older_than_ms=2**45)))
    before = there(tmp_path)

    work_off(catalog)

    assert there(tmp_path) == before
    assert f"{newest} is a commit to this table that this catalog does not have" in caplog.text


def test_a_rebuild_by_more_commits_than_the_log_has_is_no_fork(catalog: Catalog, tmp_path: Path) -> None:
    commit_to(catalog, SetProperties(updates={"write.metadata.previous-versions-max": "2"}))
    old = backup_of(catalog, tmp_path)
    for name in "bcdefghi":
        append_file(catalog, name)
    age_all(tmp_path)
    let_age(old, 30 * DAY_MS)
    rebuild(old)

    preview_orphans(old, DEPARTURES, OrphanWish())


def test_a_copy_that_is_staged_for_another_place_is_no_commit(catalog: Catalog, tmp_path: Path) -> None:
    """Spark stages it in a folder beside the metadata, and its files keep their names."""
    for number in range(3):
        commit_to(catalog, SetProperties(updates={"n": str(number)}))
    table = load_table(catalog)
    assert table.location is not None
    folder = Path(table.location.removeprefix("file://")).parent
    staged = folder / "copy-table-staging-1" / "metadata"
    staged.mkdir(parents=True)
    for file in list(folder.glob("*.metadata.json")):
        moved = file.read_text().replace(f"file://{tmp_path}", "s3://elsewhere")
        (staged / file.name).write_text(moved)

    assert table_health(catalog, DEPARTURES).facts.forks == ()
    preview_orphans(catalog, DEPARTURES, OrphanWish())


def test_an_old_backup_says_so_when_it_exports(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = backup_of(catalog, tmp_path)
    for number in range(5):
        commit_to(catalog, SetProperties(updates={"n": str(number)}))
    newest = export_pointers(catalog.server, catalog.warehouse)
    said = []

    for number in range(2):
        commit_to(old, SetProperties(updates={"n": str(number)}))
        export_pointers(old.server, old.warehouse)
        said.append(caplog.text)
        caplog.clear()

    assert f"{newest} was exported when this database knew more: the database is an old backup" in said[0]
    assert said[1] == ""


@pytest.mark.parametrize("moment", ["behind the history", "before the folder"])
def test_commits_that_land_while_a_table_is_looked_at_are_no_fork(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    metadata = load_table(catalog).metadata
    pointer = catalog.server.pointers.find(catalog.warehouse.id, DEPARTURES)
    assert pointer is not None
    land = iter([lambda: [append_file(catalog, name) for name in "bc"]])
    sweeps, known_files, list_files = catalog.server.metadata_sweeps, MetadataSweeps.known_files, files_in

    def known_files_then_commits(*wanted: Any) -> KnownFiles | None:
        found = known_files(sweeps, *wanted)
        next(land)()
        return found

    def commits_then_files(*folder: Any) -> Iterator[ListedFile]:
        next(land)()
        return list_files(*folder)

    if moment == "behind the history":
        monkeypatch.setattr(sweeps, "known_files", known_files_then_commits)
    else:
        monkeypatch.setattr(forks, "files_in", commits_then_files)

    assert find_fork(catalog, pointer.uuid, pointer.id, pointer.metadata_location, metadata) is None
    assert next(land, None) is None, "the commits have landed"


def test_health_shows_a_commit_of_another_catalog(catalog: Catalog, other: Catalog) -> None:
    location = load_table(catalog).location
    assert location is not None
    assert table_health(catalog, DEPARTURES).facts.forks == ()
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, location)
    newest = append_file(other, "b")

    assert table_health(catalog, DEPARTURES).facts.forks == (newest,)
    assert table_health(other, DEPARTURES).facts.forks == ()


def test_health_of_a_table_with_very_many_commits_looks_through_no_folder(
    catalog: Catalog, other: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = load_table(catalog).location
    assert location is not None
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, location)
    append_file(other, "b")
    monkeypatch.setattr("app.catalog.upkeep.table_health._MOST_COMMITS_LOOKED_THROUGH", 0)

    assert table_health(catalog, DEPARTURES).facts.forks == ()


def test_what_another_catalog_has_taken_over_does_not_come_back(catalog: Catalog, other: Catalog) -> None:
    location = load_table(catalog).location
    assert location is not None
    named.drop(catalog, TABLES, DEPARTURES)
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, location)
    newest = [append_file(other, name) for name in "bcd"][-1]

    with pytest.raises(UndropRefused, match=f"{newest} is a commit to it .* register that file"):
        undrop(catalog, Wanted(namespace=DEPARTURES.namespace, name=DEPARTURES.name))

    named.register(catalog, TABLES, DEPARTURES, Location(newest))


def test_commits_that_do_not_count_are_orphans_once_the_table_is_registered_again(
    catalog: Catalog, tmp_path: Path
) -> None:
    old = backup_of(catalog, tmp_path)
    append_file(catalog, "b")
    newest = append_file(catalog, "c")
    age_all(tmp_path)
    let_age(old, 30 * DAY_MS)
    with pytest.raises(OrphansRefused, match="unregister the table and register it again"):
        preview_orphans(old, DEPARTURES, OrphanWish())

    at = named.unregister(old, TABLES, DEPARTURES).location
    assert at is not None
    named.register(old, TABLES, DEPARTURES, at)
    let_age(old, 0, pointer_history)

    files = preview_orphans(old, DEPARTURES, OrphanWish()).files.values()
    assert newest in {file.location for file in files}


def test_a_purge_that_waits_in_an_old_backup_leaves_a_table_that_came_back(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    named.drop(catalog, TABLES, DEPARTURES)
    old = backup_of(catalog, tmp_path)
    let_age(old, 2 * DAY_MS, pointer_history)
    wanted = Wanted(namespace=DEPARTURES.namespace, name=DEPARTURES.name)
    undrop(catalog, wanted)
    newest = append_file(catalog, "b")
    before = there(tmp_path)

    purge_dropped(old, wanted)
    work_off(old)

    assert there(tmp_path) == before
    assert f"{newest} is a commit to this table that this catalog does not have" in caplog.text


def copy_of(catalog: Catalog, location: Location, old: str = "", new: str = "") -> Location:
    """Leave a file beside one, with a name that the same server gives, as a commit does that lost a race to it."""
    name = f"{location.rpartition('/')[2][:5]}-{new_file_uuid(catalog.server)}.metadata.json"
    left = Location(f"{location.rpartition('/')[0]}/{name}")
    content = catalog.files.read(location)
    if location.endswith(".gz.metadata.json"):
        content = gzip.decompress(content)
    assert old.encode() in content
    catalog.files.write_new(left, content.replace(old.encode(), new.encode()) if old else content)
    return left


def set_time(location: str, ago_s: int) -> None:
    os.utime(location.removeprefix("file://"), times=(time.time() - ago_s,) * 2)


def new_query(at_ms: int) -> Sequence[Update]:
    version = view_version(f"SELECT {at_ms}").replace(timestamp_ms=at_ms)
    return AddViewVersion(view_version=version), SetCurrentViewVersion(view_version_id=-1)


def change_view(catalog: Catalog, at_ms: int) -> Location:
    location = replace_view(catalog, ARRIVALS, (), new_query(at_ms)).location
    assert location is not None
    return location


def set_view_property(catalog: Catalog, _at_ms: int) -> Location:
    location = replace_view(catalog, ARRIVALS, (), [SetProperties(updates={"a": "b"})]).location
    assert location is not None
    return location


@pytest.mark.parametrize("change", [change_view, set_view_property])
def test_a_view_that_another_catalog_has_taken_over_does_not_come_back(
    catalog: Catalog, other: Catalog, change: Callable[[Catalog, int], Location]
) -> None:
    location = view_in(catalog, ARRIVALS).location
    assert location is not None
    named.drop(catalog, VIEWS, ARRIVALS)
    namespace_in(other)
    named.register(other, VIEWS, ARRIVALS, location)
    newest = change(other, START_MS + 1)

    with pytest.raises(UndropRefused, match=f"{newest} is a commit to it .* register that file"):
        undrop(catalog, Wanted(namespace=ARRIVALS.namespace, name=ARRIVALS.name))

    named.register(catalog, VIEWS, ARRIVALS, Location(newest))


def test_a_view_that_came_back_after_the_backup_and_went_on_does_not_come_back_as_it_was(
    catalog: Catalog, tmp_path: Path
) -> None:
    view_in(catalog, ARRIVALS)
    named.drop(catalog, VIEWS, ARRIVALS)
    old, wanted = backup_of(catalog, tmp_path), Wanted(namespace=ARRIVALS.namespace, name=ARRIVALS.name)
    undrop(catalog, wanted)
    change_view(catalog, START_MS + 1)
    newest = change_view(catalog, START_MS + 2)

    with pytest.raises(UndropRefused, match=newest):
        undrop(old, wanted)


def test_a_view_whose_server_was_killed_at_a_commit_comes_back(catalog: Catalog) -> None:
    view_in(catalog, ARRIVALS)
    left = copy_of(catalog, change_view(catalog, START_MS + 1), str(START_MS + 1), str(START_MS + 2))
    os.utime(left.removeprefix("file://"), times=(START_MS // 1000 + 60,) * 2)
    named.drop(catalog, VIEWS, ARRIVALS)

    undrop(catalog, Wanted(namespace=ARRIVALS.namespace, name=ARRIVALS.name))


def test_a_view_whose_server_was_killed_at_commits_that_were_to_land_together_comes_back(
    catalog: Catalog, tmp_path: Path
) -> None:
    view_in(catalog, ARRIVALS)
    before = there(tmp_path)

    class Killed(Exception):
        pass

    def die(step: str) -> None:
        if step == "before_put":
            raise Killed

    dying = with_server(catalog, step=die)
    with pytest.raises(Killed):
        land_all([Wish(dying, [ViewCommit(ARRIVALS, (), new_query(START_MS + number))]) for number in (1, 2)])
    (left,) = there(tmp_path) - before
    os.utime(left.removeprefix("file://"), times=(START_MS // 1000 + 60,) * 2)
    named.drop(catalog, VIEWS, ARRIVALS)

    undrop(catalog, Wanted(namespace=ARRIVALS.namespace, name=ARRIVALS.name))


def test_a_commit_of_another_catalog_in_the_second_of_the_registration_is_found(
    catalog: Catalog, other: Catalog
) -> None:
    """Stores cut the times of files to whole seconds, and have clocks of their own."""
    location = load_table(catalog).location
    assert location is not None
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, location)
    newest = append_file(catalog, "b")
    let_age(other, 0, pointer_history)
    set_time(newest, 1)

    assert table_health(other, DEPARTURES).facts.forks == (newest,)


def test_what_lost_a_race_in_another_catalog_before_the_registration_is_no_commit(
    catalog: Catalog, other: Catalog
) -> None:
    """A server that was killed leaves such a file."""
    location = Location(append_file(catalog, "b"))
    left = copy_of(catalog, location)
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, location)
    let_age(other, 0, pointer_history)
    set_time(left, 1)

    assert table_health(other, DEPARTURES).facts.forks == ()


def test_what_a_view_lost_in_another_catalog_before_the_registration_keeps_it_from_nothing(
    catalog: Catalog, other: Catalog
) -> None:
    view_in(catalog, ARRIVALS)
    location = change_view(catalog, START_MS + 1)
    left = copy_of(catalog, location, str(START_MS + 1), str(START_MS + 2))
    namespace_in(other)
    named.register(other, VIEWS, ARRIVALS, location)
    let_age(other, 0)
    set_time(left, 1)
    named.drop(other, VIEWS, ARRIVALS)

    undrop(other, Wanted(namespace=ARRIVALS.namespace, name=ARRIVALS.name))


def test_commits_that_the_history_has_forgotten_are_no_forks(catalog: Catalog, tmp_path: Path) -> None:
    """Also where a file between is gone, as since a table deletes those that leave its log."""
    commit_to(catalog, SetProperties(updates={"write.metadata.previous-versions-max": "1"}))
    commits = [append_file(catalog, name) for name in "bcdef"]
    Path(commits[1].removeprefix("file://")).unlink()
    execute(catalog, delete(pointer_history).where(pointer_history.c.location.not_in(commits[-2:])))
    let_age(catalog, 0, pointer_history)
    for location in there(tmp_path):
        set_time(location, 60)

    assert table_health(catalog, DEPARTURES).facts.forks == ()
