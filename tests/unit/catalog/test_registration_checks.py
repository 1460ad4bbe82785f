from __future__ import annotations

import json
import re
from typing import Any

import pytest

from app.catalog import named
from app.catalog.commits.dry_runs import dry_run_transaction
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.named import unregister
from app.catalog.past.dropped import Wanted, purge_dropped, undrop
from app.catalog.registration_checks import check_registration, facts_of
from app.catalog.tables import purge_table
from app.catalog.upkeep.upkeep_plans import table_upkeep
from app.catalog.views import NewView, replace_view
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.jobs import Job
from app.errors import CommitFailed, NotAllowed, PurgeRefused
from tests.builders.catalogs import new_warehouse, with_rules
from tests.builders.commits import commit_table
from tests.builders.manifest_records import manifest_list_of
from tests.builders.parquet_files import table_of
from tests.builders.tables import (
    DEPARTURES,
    FLIGHTS,
    SCHEMA,
    append_to,
    load_table,
    namespace_in,
    table_in,
    view_in,
    view_version,
)

NEW = TableIdentifier(FLIGHTS, "new")
MANIFEST = "memory://wh/old/metadata/m.avro"
SNAPSHOT: dict[str, Any] = {
    "snapshot-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "sequence-number": 0,
    "manifest-list": "memory://wh/old/metadata/snap-1.avro",
    "summary": {"operation": "append", "total-records": "7", "total-data-files": "2"},
}
OLD = "memory://wh/old/metadata/00003-x.metadata.json"


def stored(catalog: Catalog, path: str = OLD, **changes: Any) -> str:
    """Write a metadata file of a table that another catalog has."""
    document = table_of([{"id": 1, "name": "id", "type": "long", "required": False}]).to_object()
    document |= {
        "location": "memory://wh/old",
        **{key.replace("_", "-"): value for key, value in changes.items()},
    }
    catalog.files.write_new(Location(path), json.dumps(document).encode())
    return path


def findings(catalog: Catalog, location: str = OLD, name: TableIdentifier = NEW) -> dict[str, str]:
    """Return the severity of each finding by its code."""
    namespace_in(catalog, FLIGHTS)
    found = check_registration(catalog, TABLES, name, location)
    assert found.would_register is all(item.severity != "refused" for item in found.findings)
    return {item.code: str(item.severity) for item in found.findings}


def test_table_that_fits_has_no_findings_and_its_facts(catalog: Catalog) -> None:
    catalog.files.write_new(Location(MANIFEST), b"")
    catalog.files.write_new(Location(SNAPSHOT["manifest-list"]), manifest_list_of(1, MANIFEST))
    staged = {**SNAPSHOT, "snapshot-id": 2, "summary": {"operation": "append", "wap.id": "w1"}}
    # Files of the log may be gone: that is fine.
    log = [
        {
            "timestamp-ms": 1_600_000_000_000,
            "metadata-file": "memory://wh/old/metadata/00002-gone.metadata.json",
        }
    ]
    stored(catalog, snapshots=[SNAPSHOT, staged], current_snapshot_id=1, metadata_log=log)

    assert findings(catalog) == {}
    found = check_registration(catalog, TABLES, NEW, OLD)
    assert found.metadata is not None
    facts = facts_of(found.metadata)
    assert (facts["snapshots"], facts["staged-snapshots"], facts["refs"]) == (2, 1, {"main": 1})
    assert facts["totals"] == {"records": "7", "data-files": "2"}
    assert catalog.find(NEW) is None


@pytest.mark.parametrize(
    ("code", "severity", "changes"),
    [
        ("encrypted", "refused", {"properties": {"encryption.key-id": "k"}}),
        ("snapshot-table", "warning", {"properties": {"gc.enabled": "false", "snapshot": "true"}}),
        ("gc-disabled", "warning", {"properties": {"gc.enabled": "false"}}),
        ("outside-warehouse", "refused", {"location": "memory://elsewhere/old"}),
        ("outside-warehouse", "refused", {"properties": {"write.data.path": "memory://elsewhere/data"}}),
        ("files-missing", "refused", {"snapshots": [SNAPSHOT], "current_snapshot_id": 1}),
        ("location-overlaps", "refused", {"location": "memory://wh"}),
        ("no-uuid", "warning", {"format_version": 1, "table_uuid": None, "last_sequence_number": None}),
        ("metadata-unreadable", "refused", {"format_version": 99}),
    ],
)
def test_trap_in_the_metadata_is_found(
    catalog: Catalog, code: str, severity: str, changes: dict[str, Any]
) -> None:
    stored(catalog, **changes)

    assert findings(catalog) == {code: severity}


def test_table_goes_on_where_its_location_ends_with_a_slash(catalog: Catalog) -> None:
    namespace_in(catalog, FLIGHTS)
    named.register(catalog, TABLES, NEW, stored(catalog, location="memory://wh/old/"))

    first = commit_table(catalog, NEW, (), [SetProperties(updates={"a": "1"})])
    second = commit_table(catalog, NEW, (), [SetProperties(updates={"a": "2"})])

    for landed in (first, second):
        assert str(landed.location).startswith("memory://wh/old/metadata/0000")
    assert load_table(catalog, NEW).metadata.properties["a"] == "2"
    check_registration(catalog, TABLES, NEW, str(second.location), overwrite=True)
    purge_table(catalog, NEW)


def test_view_keeps_the_slash_at_the_end_of_its_location_but_not_two(catalog: Catalog) -> None:
    namespace_in(catalog, FLIGHTS)

    view = named.create(catalog, NewView(NEW, SCHEMA, view_version(), "memory://wh/v/", {}))

    assert view.metadata.location == "memory://wh/v/"
    assert str(view.location).startswith("memory://wh/v/metadata/00000-")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (manifest_list_of(3, MANIFEST), f"A manifest of the current snapshot is gone.*{MANIFEST}"),
        (manifest_list_of(3, MANIFEST)[:-9], "list of manifests cannot be read"),
        (b"", "list of manifests cannot be read"),
    ],
    ids=["no manifest", "half a list", "an empty list"],
)
def test_copy_that_broke_off_is_found(catalog: Catalog, content: bytes, said: str) -> None:
    catalog.files.write_new(Location(SNAPSHOT["manifest-list"]), content)
    stored(catalog, snapshots=[SNAPSHOT], current_snapshot_id=1)

    assert findings(catalog) == {"files-missing": "refused"}
    (found,) = check_registration(catalog, TABLES, NEW, OLD).findings
    assert re.search(said, found.message)
    assert found.can_be_allowed


def test_encrypted_snapshots_are_found(catalog: Catalog) -> None:
    catalog.files.write_new(Location("memory://wh/old/metadata/snap-1.avro"), b"a list")
    stored(catalog, snapshots=[{**SNAPSHOT, "key-id": "k"}], current_snapshot_id=1)

    assert findings(catalog) == {"encrypted": "refused"}


def test_names_of_file_system_tables_are_found(catalog: Catalog) -> None:
    location = stored(catalog, "memory://wh/old/metadata/v3.metadata.json")
    assert findings(catalog, location) == {"file-system-names": "warning"}


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def test_what_cannot_be_read_is_refused(catalog: Catalog) -> None:
    assert findings(catalog, "memory://wh/nothing.json") == {"metadata-missing": "refused"}
    assert findings(catalog, "memory://elsewhere/x.json") == {"outside-warehouse": "refused"}
    catalog.files.write_new(Location("memory://wh/text"), b"no json")
    assert findings(catalog, "memory://wh/text") == {"metadata-unreadable": "refused"}


def test_names_twins_and_shared_places_are_found_in_all_warehouses(catalog: Catalog) -> None:
    other = new_warehouse(catalog.server, "other", "memory://other")
    stored(catalog)
    named.register(catalog, TABLES, _registered(catalog), OLD)
    assert findings(catalog) == {"same-uuid": "refused"}
    namespace_in(other, FLIGHTS)
    twin = check_registration(other, TABLES, NEW, OLD)
    assert [item.code for item in twin.findings] == ["outside-warehouse"]

    copied = stored(catalog, "memory://wh/old/metadata/copy.metadata.json", table_uuid=_uuid(1))
    assert findings(catalog, copied) == {"location-shared": "refused"}
    inner = stored(
        catalog, "memory://wh/old/in/metadata/1.json", location="memory://wh/old/in", table_uuid=_uuid(2)
    )
    assert findings(catalog, inner) == {"location-overlaps": "refused"}
    outer = stored(catalog, "memory://wh/w/metadata/1.json", location="memory://wh/w", table_uuid=_uuid(3))
    stored(catalog, "memory://wh/w/in/metadata/1.json", location="memory://wh/w/in", table_uuid=_uuid(4))
    named.register(catalog, TABLES, TableIdentifier(FLIGHTS, "inner"), "memory://wh/w/in/metadata/1.json")
    assert findings(catalog, outer) == {"location-overlaps": "refused"}
    # A folder whose name only begins alike is another one.
    beside = stored(
        catalog, "memory://wh/w/inn/metadata/1.json", location="memory://wh/w/inn", table_uuid=_uuid(5)
    )
    assert findings(catalog, beside) == {}
    assert findings(catalog, name=_registered(catalog)) == {"name-taken": "refused"}


def _registered(catalog: Catalog) -> TableIdentifier:
    namespace_in(catalog, FLIGHTS)
    return TableIdentifier(FLIGHTS, "registered")


def test_views_and_missing_namespaces_are_checked(catalog: Catalog) -> None:
    location = view_in(catalog).location
    assert location is not None
    named.drop(catalog, VIEWS, DEPARTURES)
    found = check_registration(catalog, VIEWS, TableIdentifier(Namespace(("nowhere",)), "v"), location)

    assert [item.code for item in found.findings] == ["namespace-missing", "dropped-twin"]
    assert found.would_register
    assert found.metadata is not None
    assert facts_of(found.metadata)["dialects"] == ["spark"]
    wrong = check_registration(catalog, TABLES, NEW, location)
    assert [item.code for item in wrong.findings] == ["metadata-unreadable"]


def test_read_only_table_is_neither_written_nor_deleted_until_it_is_registered_as_an_own_one(
    catalog: Catalog,
) -> None:
    table = append_to(catalog, table_in(catalog))
    location = table.location
    assert location is not None
    unregister(catalog, TABLES, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, location, read_only=True)

    owner = SetProperties(updates={"owner": "anna"})
    assert load_table(catalog).metadata.properties["gc.enabled"] == "false"
    with pytest.raises(NotAllowed, match="read-only here"):
        commit_table(catalog, DEPARTURES, [], [owner])
    with pytest.raises(PurgeRefused):
        purge_table(catalog, DEPARTURES)
    pointer = catalog.load(TABLES, DEPARTURES)
    assert catalog.server.pointers.may_share_files(pointer.uuid, pointer.id)

    with pytest.raises(CommitFailed, match=r"expected metadata-location memory://x, it is at memory://wh/"):
        named.register(catalog, TABLES, DEPARTURES, location, overwrite=True, expected="memory://x")
    named.register(catalog, TABLES, DEPARTURES, location, overwrite=True, expected=location)
    assert "gc.enabled" not in load_table(catalog).metadata.properties
    commit_table(catalog, DEPARTURES, [], [owner])
    assert not catalog.server.pointers.may_share_files(pointer.uuid, pointer.id)


def test_read_only_table_is_not_purged_even_if_its_metadata_cannot_be_read_now(catalog: Catalog) -> None:
    location = table_in(catalog).location
    assert location is not None
    content = catalog.files.read(location)
    unregister(catalog, TABLES, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, location, read_only=True)
    catalog.files.delete(location)
    dropped = Wanted(namespace=FLIGHTS, name=DEPARTURES.name)

    with pytest.raises(PurgeRefused):
        purge_table(catalog, DEPARTURES)
    named.drop(catalog, TABLES, DEPARTURES)
    with pytest.raises(PurgeRefused):
        purge_dropped(catalog, dropped)

    # When the file is there again, nothing waits to delete it.
    catalog.files.write_new(location, content)
    assert catalog.server.file_deletions.counts() == {}
    undrop(catalog, dropped)
    assert load_table(catalog).metadata.properties["gc.enabled"] == "false"


def test_table_that_has_moved_on_is_not_let_go(catalog: Catalog) -> None:
    first = table_in(catalog)
    second = append_to(catalog, first)

    with pytest.raises(CommitFailed, match="expected metadata-location"):
        unregister(catalog, TABLES, DEPARTURES, first.location)

    assert unregister(catalog, TABLES, DEPARTURES, second.location).location == second.location


def test_paths_of_another_scheme_are_found(catalog: Catalog) -> None:
    stored(catalog, location="s3a://lake/old")

    assert findings(with_rules(catalog, allow_external_locations=True)) == {"other-scheme": "warning"}


def test_upkeep_leaves_what_is_read_only(catalog: Catalog) -> None:
    location = table_in(catalog, properties={"icetower.maintenance": "recommended"}).location
    assert location is not None
    named.register(catalog, TABLES, DEPARTURES, location, overwrite=True, read_only=True)

    plan = table_upkeep(catalog, DEPARTURES, [Job.EXPIRE_SNAPSHOTS]).plan
    assert plan.jobs == ()
    assert {left.reason for left in plan.left} == {
        "the table is read-only here: it belongs to another catalog"
    }


def test_read_only_views_are_not_replaced(catalog: Catalog) -> None:
    location = view_in(catalog).location
    assert location is not None
    named.register(catalog, VIEWS, DEPARTURES, location, overwrite=True, read_only=True)

    with pytest.raises(NotAllowed, match="read-only here"):
        replace_view(catalog, DEPARTURES, [], [SetProperties(updates={"a": "b"})])


def test_dry_run_of_a_commit_to_it_is_answered_as_the_commit_would_be(catalog: Catalog) -> None:
    location = table_in(catalog).location
    assert location is not None
    named.register(catalog, TABLES, DEPARTURES, location, overwrite=True, read_only=True)

    with pytest.raises(NotAllowed, match="read-only here"):
        dry_run_transaction(catalog, [TableCommit(DEPARTURES, [], [SetProperties(updates={"a": "b"})])])


def test_twin_that_was_dropped_and_can_come_back_is_found(catalog: Catalog) -> None:
    location = table_in(catalog).location
    assert location is not None
    named.drop(catalog, TABLES, DEPARTURES)

    assert findings(catalog, location) == {"dropped-twin": "warning"}

    purge_dropped(catalog, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))
    assert "dropped-twin" not in findings(catalog, location)
