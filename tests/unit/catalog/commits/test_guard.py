from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import REGISTRY

from app.catalog.commits.table_commits import TableCommit, commit_transaction
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import LoadedTable
from app.catalog.refs import change_ref
from app.catalog.warehouse_changes import MappingChange, WarehouseChange
from app.catalog.warehouses import create_warehouse, update_warehouse
from app.database.pointers.moves import Advance
from app.database.warehouses import Warehouse
from app.engine.branches.ref_changes import RefChange, RollBack
from app.engine.change.requirements import AssertCreate
from app.engine.change.updates import AddSpec, RemovePartitionSpecs, SetDefaultSpec, SetProperties, Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SpecId
from app.engine.model.partition_spec import UnboundPartitionField, UnboundPartitionSpec
from app.engine.model.snapshot import Snapshot
from app.errors import CommitRefused, FilesUnavailable, InvalidSetting, InvalidUpdate
from app.fileio.files import FileIO
from app.formats.manifests.source import ManifestCache
from tests.builders import racing_writers
from tests.builders.catalogs import CALLER, with_server, with_warehouse
from tests.builders.commits import commit_table
from tests.builders.failing_files import FailingFiles
from tests.builders.table_files import TableFiles
from tests.builders.tables import (
    DEPARTURES,
    FLIGHTS,
    SCHEMA,
    append,
    commit_to,
    load_table,
    namespace_in,
    snapshot_on,
    table_in,
)
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates, files_in, interfering


def findings(kind: str, outcome: str) -> float:
    labels = {"kind": kind, "outcome": outcome}
    return REGISTRY.get_sample_value("icetower_guard_findings_total", labels) or 0


def looked(outcome: str) -> float:
    return REGISTRY.get_sample_value("icetower_guarded_snapshots_total", {"outcome": outcome}) or 0


@contextmanager
def counted(counter: Callable[[], float], times: int = 1) -> Iterator[None]:
    before = counter()
    yield
    assert counter() == before + times


def commit(catalog: Catalog, *updates: Update, table: TableIdentifier = DEPARTURES) -> LoadedTable:
    return commit_table(catalog, table, [], updates)


def dangling(table: LoadedTable) -> list[Update]:
    """Return an append whose manifest list is not there."""
    return append(snapshot_on(table.metadata))


def over(files: FileIO) -> Callable[[Warehouse], FileIO]:
    return lambda _warehouse: files


def written(catalog: Catalog, table: LoadedTable) -> Snapshot:
    """Return a sound append, its files written."""
    return TableFiles(catalog.files).snapshot(table.metadata, ["a"])


def guarding(catalog: Catalog, **properties: str) -> LoadedTable:
    """Return a new table with properties of the guard."""
    named = {f"icetower.{name.replace('_', '.')}": value for name, value in properties.items()}
    return table_in(catalog, DEPARTURES, named)


def test_sound_commit_is_counted_as_clean(catalog: Catalog) -> None:
    table = guarding(catalog, guard="reject")
    snapshot = written(catalog, table)

    with counted(lambda: looked("clean")):
        after = commit(catalog, *append(snapshot))

    assert after.metadata.current_snapshot_id == snapshot.snapshot_id


def test_finding_is_logged_and_counted_and_the_commit_lands(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_in(catalog)
    updates = dangling(table)

    with (
        counted(lambda: findings("missing-file", "warned")),
        counted(lambda: looked("found")),
        caplog.at_level(logging.WARNING),
    ):
        after = commit(catalog, *updates)

    assert after.metadata.current_snapshot is not None
    (record,) = caplog.records
    assert "names a file that is not there" in record.message
    assert vars(record)["fields"] == {
        "warehouse": "wh",
        "table": "flights.departures",
        "kind": "missing-file",
        "outcome": "warned",
        "snapshot_id": after.metadata.current_snapshot_id,
        "file": after.metadata.current_snapshot.manifest_list,
    }


def test_rejected_commit_changes_nothing_and_says_how_to_go_on(catalog: Catalog) -> None:
    table = guarding(catalog, guard="reject")
    files = files_in(catalog)

    with (
        counted(lambda: findings("missing-file", "rejected")),
        pytest.raises(CommitRefused) as caught,
    ):
        commit(catalog, *dangling(table))

    assert str(caught.value).startswith("Guard refuses the commit to flights.departures: snapshot ")
    assert "set the table property icetower.guard to warn or off, or add missing-file to" in str(caught.value)
    assert load_table(catalog, DEPARTURES).location == table.location
    assert files_in(catalog) == files


def test_nothing_is_read_when_the_guard_is_off(catalog: Catalog) -> None:
    table = guarding(catalog, guard="off")
    snapshot = written(catalog, table)
    assert snapshot.manifest_list is not None
    blind = FailingFiles(catalog.files, unreadable={snapshot.manifest_list})

    with counted(lambda: looked("clean"), 0), counted(lambda: looked("unchecked"), 0):
        commit(with_server(catalog, files_of=over(blind)), *append(snapshot))


def test_no_commit_switches_off_its_own_guard(catalog: Catalog) -> None:
    table = guarding(catalog, guard="reject")
    off = SetProperties(updates={"icetower.guard": "off"})

    with pytest.raises(CommitRefused):
        commit(catalog, off, *dangling(table))

    table = commit(catalog, off)
    assert commit(catalog, *dangling(table)).metadata.current_snapshot is not None


def test_override_of_the_warehouse_is_stronger_than_the_table_and_that_than_the_default(
    catalog: Catalog,
) -> None:
    reject, off = {"icetower.guard": "reject"}, {"icetower.guard": "off"}
    table = guarding(catalog, guard="off")
    with pytest.raises(CommitRefused, match=r"set the override property of warehouse wh icetower\.guard to"):
        commit(with_warehouse(catalog, override_properties=reject), *dangling(table))
    commit(with_warehouse(catalog, default_properties=reject), *dangling(table))

    other = table_in(catalog, ARRIVALS)
    with pytest.raises(CommitRefused):
        commit(with_warehouse(catalog, default_properties=reject), *dangling(other), table=ARRIVALS)
    with counted(lambda: looked("found"), 0):
        commit(with_warehouse(catalog, override_properties=off), *dangling(other), table=ARRIVALS)


def test_kinds_that_are_ignored(catalog: Catalog) -> None:
    table = guarding(catalog, guard="reject", guard_ignore="missing-file")

    with counted(lambda: findings("missing-file", "rejected"), 0):
        commit(catalog, *dangling(table))


def test_transaction_with_one_bad_table_changes_none(catalog: Catalog) -> None:
    good = guarding(catalog, guard="reject")
    bad = table_in(catalog, ARRIVALS, {"icetower.guard": "reject"})
    files = files_in(catalog)
    snapshot = written(catalog, good)
    own = files_in(catalog) - files

    with pytest.raises(CommitRefused, match=r"flights\.arrivals"):
        commit_transaction(
            catalog,
            [TableCommit(DEPARTURES, [], append(snapshot)), TableCommit(ARRIVALS, [], dangling(bad))],
        )

    assert load_table(catalog, DEPARTURES).location == good.location
    assert load_table(catalog, ARRIVALS).location == bad.location
    assert files_in(catalog) == files | own


def test_changes_of_one_table_in_a_transaction_are_looked_at_together(catalog: Catalog) -> None:
    table = guarding(catalog, guard="reject")
    files = TableFiles(catalog.files)
    first = files.snapshot(table.metadata, ["a"])
    second = files.snapshot(
        table.metadata.replace(last_sequence_number=first.sequence, snapshots=(first,)), ["b"], parent=first
    )

    with counted(lambda: looked("clean"), 2):
        commit_transaction(
            catalog,
            [TableCommit(DEPARTURES, [], append(first)), TableCommit(DEPARTURES, [], append(second))],
        )


def test_table_that_is_created_with_a_snapshot_is_guarded_by_its_own_properties(catalog: Catalog) -> None:
    namespace_in(catalog, FLIGHTS)
    creation = creation_updates()
    location = "memory://wh/flights/staged"
    snapshot = Snapshot.from_object(
        {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": catalog.now_ms(),
            "manifest-list": f"{location}/metadata/gone.avro",
            "summary": {"operation": "append"},
        }
    )
    strict = SetProperties(updates={"icetower.guard": "reject"})

    def create(*updates: Update) -> LoadedTable:
        return commit_table(catalog, DEPARTURES, [AssertCreate()], updates)

    with pytest.raises(CommitRefused, match="names a file that is not there"):
        create(*creation, strict, *append(snapshot))
    with counted(lambda: findings("missing-file", "warned")):
        create(*creation, *append(snapshot))


def test_what_the_server_itself_commits_is_not_held_up(catalog: Catalog) -> None:
    table = guarding(catalog, guard="warn")
    first = commit(catalog, *dangling(table))
    commit(catalog, *dangling(first))
    commit(catalog, SetProperties(updates={"icetower.guard": "reject"}))
    back = first.metadata.current_snapshot_id
    assert back is not None

    change_ref(catalog, DEPARTURES, RefChange("main", RollBack(target=back)))

    assert load_table(catalog, DEPARTURES).metadata.current_snapshot_id == back


def test_store_that_does_not_answer_holds_up_only_who_rejects(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    table = guarding(catalog, guard="reject")
    snapshot = written(catalog, table)
    assert snapshot.manifest_list is not None
    files = FailingFiles(catalog.files, unreadable={snapshot.manifest_list})
    failing = with_server(catalog, files_of=over(files))

    with pytest.raises(FilesUnavailable):
        commit(failing, *append(snapshot))
    assert load_table(catalog, DEPARTURES).location == table.location

    commit(catalog, SetProperties(updates={"icetower.guard": "warn"}))
    with counted(lambda: looked("unchecked")):
        commit(failing, *append(snapshot))
    assert "could not look at a commit to flights.departures: Cannot read" in caplog.messages[-1]


class BrokenFiles(FailingFiles):
    """Files with a mistake in them that nobody foresaw."""

    def read(self, location: Location) -> bytes:
        if location in self.unreadable:
            raise RuntimeError("not foreseen")
        return super().read(location)


@pytest.mark.parametrize("mode", ["warn", "reject"])
def test_mistake_of_the_guard_holds_up_nobody(
    catalog: Catalog, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = guarding(catalog, guard=mode)
    snapshot = written(catalog, table)
    assert snapshot.manifest_list is not None
    files = BrokenFiles(catalog.files, unreadable={snapshot.manifest_list})

    with counted(lambda: looked("unchecked")):
        commit(with_server(catalog, files_of=over(files)), *append(snapshot))

    assert "met something unexpected" in caplog.messages[-1]


def test_unreadable_manifest_list_is_no_finding(catalog: Catalog) -> None:
    table = guarding(catalog, guard="reject")
    snapshot = snapshot_on(table.metadata)
    assert snapshot.manifest_list is not None
    catalog.files.write_new(snapshot.manifest_list, b"no avro")

    with counted(lambda: looked("unchecked")):
        commit(catalog, *append(snapshot))


def test_manifest_list_outside_the_warehouse_is_found_but_not_read(catalog: Catalog) -> None:
    table = guarding(catalog, guard="warn")
    snapshot = snapshot_on(table.metadata, manifest_list="memory://elsewhere/snap.avro")

    with counted(lambda: findings("outside-location", "warned")):
        commit(catalog, *append(snapshot))


def test_finding_is_told_once_however_often_the_race_is_lost(catalog: Catalog) -> None:
    table = table_in(catalog)
    racing, pointers = interfering(catalog)
    rival = commit(catalog, SetProperties(updates={"by": "rival"}))
    assert rival.location is not None
    now = catalog.server.pointers.find(catalog.warehouse.id, DEPARTURES)
    assert now is not None
    files = catalog.files
    copy = Location(f"{rival.location}.copy.metadata.json")
    files.write_new(copy, files.read(rival.location))
    pointers.rivals = [[Advance(now, copy, now.uuid)]]

    with counted(lambda: findings("missing-file", "warned")):
        commit(racing, *dangling(table))

    assert pointers.rivals == []


def test_settings_that_make_no_sense_are_refused(catalog: Catalog) -> None:
    table_in(catalog)
    wrong = {"icetower.guard": "loud"}

    with pytest.raises(InvalidUpdate, match=r"icetower\.guard must be off, warn or reject, found 'loud'"):
        commit(catalog, SetProperties(updates=wrong))
    change = WarehouseChange(override_properties=MappingChange(updates=wrong))
    with pytest.raises(InvalidSetting, match=r"icetower\.guard must be"):
        update_warehouse(catalog.server, CALLER, "wh", change)
    with pytest.raises(InvalidSetting, match=r"icetower\.guard\.ignore must be"):
        create_warehouse(
            catalog.server, CALLER, "other", "memory://other", {"icetower.guard.ignore": "x"}, {}, {}
        )


def test_commits_without_snapshots_cost_nothing(catalog: Catalog) -> None:
    guarding(catalog, guard="reject")
    cache = ManifestCache(1 << 20)

    with counted(lambda: looked("clean"), 0):
        commit(with_server(catalog, manifest_cache=cache), SetProperties(updates={"a": "b"}))

    assert cache.held_bytes == 0


@pytest.fixture
def partitioned(catalog: Catalog) -> None:
    """Make a table that rejects what the guard finds, with a second partition spec."""
    racing_writers.rebasing_table(catalog, "off")
    add_spec(catalog, 0)
    assert load_table(catalog).metadata.default_spec_id == 1


def add_spec(catalog: Catalog, column: int) -> None:
    source = SCHEMA.fields[column]
    field = UnboundPartitionField(source_id=source.id, name=f"by_{source.name}", transform="identity")
    commit_to(
        catalog, AddSpec(spec=UnboundPartitionSpec(fields=(field,))), SetDefaultSpec(spec_id=SpecId(-1))
    )


def remove_spec(catalog: Catalog) -> None:
    commit_to(catalog, SetDefaultSpec(spec_id=SpecId(0)), RemovePartitionSpecs(spec_ids=(SpecId(1),)))


@pytest.mark.usefixtures("partitioned")
@pytest.mark.parametrize("column", [0, 1], ids=["of the same column", "of another column"])
def test_partition_spec_whose_id_another_one_has_by_now(catalog: Catalog, column: int) -> None:
    """Also where it is the same one again: its field has another id, under which Java finds no value in the files."""
    stale = racing_writers.writer(catalog).append(["stale"])
    remove_spec(catalog)
    add_spec(catalog, column)
    assert load_table(catalog).metadata.default_spec_id == 1

    with pytest.raises(
        CommitRefused, match="was written with another partition spec 1 than the table has now"
    ):
        racing_writers.commit(catalog, stale)

    assert not racing_writers.live_files(catalog)


@pytest.mark.usefixtures("partitioned")
def test_partition_spec_that_is_gone(catalog: Catalog) -> None:
    stale = racing_writers.writer(catalog).append(["stale"])
    remove_spec(catalog)

    with pytest.raises(CommitRefused, match="of partition spec 1, which the table does not have"):
        racing_writers.commit(catalog, stale)

    assert not racing_writers.live_files(catalog)


@pytest.mark.usefixtures("partitioned")
def test_manifests_of_an_older_partition_spec(catalog: Catalog) -> None:
    old = racing_writers.writer(catalog).append(["old"])
    add_spec(catalog, 1)
    assert load_table(catalog).metadata.default_spec_id == 2
    commit_to(catalog, SetDefaultSpec(spec_id=SpecId(0)))

    racing_writers.commit(catalog, old)

    assert len(racing_writers.live_files(catalog)) == 1
