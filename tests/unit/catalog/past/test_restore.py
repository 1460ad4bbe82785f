"""Restoring tables to what they were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.catalog import named, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.past.dropped import NewName, Wanted, undrop
from app.catalog.past.restore import MOST_TABLES, Restored, restore_tables
from app.engine.change.updates import (
    AddSchema,
    RemoveProperties,
    RemoveSnapshots,
    SetCurrentSchema,
    SetProperties,
    SetSnapshotRef,
)
from app.engine.model.ids import Location, SchemaId
from app.engine.model.schema import Schema
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRequest, NoSuchTable
from app.recoveries import InvalidMoment, PastIsGone, RestoreRefused
from tests.builders.tables import DEPARTURES, append_to, commit_to, head, load_table, table_in
from tests.unit.catalog.context.test_deletable import nameless_table

WIDER = Schema.from_json(
    b'{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},'
    b'{"id":3,"name":"delay","required":false,"type":"int"}]}'
)


def now(catalog: Catalog) -> str:
    return str(catalog.now_ms())


def restore(catalog: Catalog, at: str, *names: Any, dry_run: bool = False) -> list[Restored]:
    return restore_tables(catalog, names or (DEPARTURES,), at, dry_run=dry_run)[1]


def facts(metadata: TableMetadata) -> tuple[object, ...]:
    """Return what a restoration brings back."""
    current = metadata.current_snapshot
    return (
        metadata.current_schema.fields,
        metadata.default_spec.fields,
        metadata.default_sort_order.fields,
        metadata.properties,
        metadata.location,
        None if current is None else current.snapshot_id,
    )


def spoil(catalog: Catalog) -> None:
    """Change whatever a restoration brings back."""
    changes: list[Any] = [
        AddSchema.model_validate({"schema": WIDER}),
        SetCurrentSchema(schema_id=SchemaId(-1)),
        SetProperties(updates={"spoiled": "yes", "stage": "two"}),
    ]
    commit_to(catalog, *changes)
    append_to(catalog, load_table(catalog))


def test_table_is_what_it_was_and_nothing_is_lost(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog, properties={"stage": "one"}))
    before, at = load_table(catalog), now(catalog)
    spoil(catalog)
    spoiled, after_spoiling = load_table(catalog), now(catalog)

    (restored,) = restore(catalog, at)

    after = load_table(catalog)
    assert facts(after.metadata) == facts(before.metadata)
    assert restored.location == before.location
    assert restored.snapshot_id == head(before).snapshot_id
    assert head(spoiled).snapshot_id in after.metadata.snapshots_by_id
    assert catalog.pointers.history(catalog.load(TABLES, DEPARTURES).id)[0].event == "restored"
    restore(catalog, after_spoiling)
    assert facts(load_table(catalog).metadata) == facts(spoiled.metadata)


def test_table_without_rows_gets_none_again(catalog: Catalog) -> None:
    before, at = table_in(catalog), now(catalog)
    append_to(catalog, before)

    restore(catalog, at)

    assert load_table(catalog).metadata.current_snapshot is None
    assert append_to(catalog, load_table(catalog)).metadata.current_snapshot is not None


def test_what_is_as_it_was_is_not_written_anew(catalog: Catalog) -> None:
    before = append_to(catalog, table_in(catalog))

    (restored,) = restore(catalog, now(catalog))

    assert restored.updates == ()
    assert load_table(catalog).location == before.location


def test_dry_run_says_what_would_change_and_changes_nothing(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    at = now(catalog)
    spoil(catalog)
    before = load_table(catalog)

    (restored,) = restore(catalog, at, dry_run=True)

    actions = {update.action for update in restored.updates}
    assert actions == {"add-schema", "set-current-schema", "remove-properties", "set-snapshot-ref"}
    assert load_table(catalog) == before


def test_branches_tags_and_protection_stay(catalog: Catalog) -> None:
    first = append_to(catalog, table_in(catalog))
    at = now(catalog)
    tag = SetSnapshotRef(ref_name="kept", snapshot_id=head(first).snapshot_id, type="tag")
    commit_to(catalog, tag, SetProperties(updates={"icetower.protected": "true", "k": "v"}))

    restore(catalog, at)

    after = load_table(catalog).metadata
    assert "kept" in after.snapshot_refs
    assert after.properties.get("icetower.protected") == "true"
    assert "k" not in after.properties


def test_name_mapping_that_came_since_stays(catalog: Catalog) -> None:
    """Files without field ids, of snapshots and branches that stay, are read by it."""
    append_to(catalog, table_in(catalog))
    at = now(catalog)
    mapping = '[{"field-id":1,"names":["id"]},{"field-id":2,"names":["carrier"]}]'
    commit_to(catalog, SetProperties(updates={"schema.name-mapping.default": mapping, "k": "v"}))
    append_to(catalog, load_table(catalog))
    later = now(catalog)

    restore(catalog, at)

    after = load_table(catalog).metadata.properties
    assert after.get("schema.name-mapping.default") == mapping
    assert "k" not in after
    renamed = mapping.replace('["carrier"]', '["carrier","airline"]')
    for since, restored in (("[]", mapping), (renamed, renamed), (renamed.replace("2", "3"), mapping)):
        commit_to(catalog, SetProperties(updates={"schema.name-mapping.default": since}))
        restore(catalog, later)
        assert load_table(catalog).metadata.properties["schema.name-mapping.default"] == restored


FENCE = {"icetower.moved-to": "http://new", "gc.enabled": "false"}


def test_fence_of_a_table_that_has_moved_stays(catalog: Catalog) -> None:
    """Without it an expiry here would delete files of the catalog that has the table now."""
    append_to(catalog, table_in(catalog, properties={"stage": "one"}))
    at = now(catalog)
    commit_to(catalog, SetProperties(updates={**FENCE, "stage": "two"}))

    restore(catalog, at)

    assert load_table(catalog).metadata.properties.items() >= {**FENCE, "stage": "one"}.items()


def test_fence_that_was_taken_back_does_not_come_back(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog, properties={**FENCE, "stage": "one"}))
    at = now(catalog)
    commit_to(catalog, RemoveProperties(removals=(*FENCE,)), SetProperties(updates={"stage": "two"}))

    restore(catalog, at)

    assert load_table(catalog).metadata.properties.items() & FENCE.items() == set()
    assert load_table(catalog).metadata.properties["stage"] == "one"


def test_values_that_cannot_be_set_keep_nothing_from_being_restored(catalog: Catalog) -> None:
    """A table of another catalog may have come with them."""
    made = append_to(catalog, table_in(catalog, properties={"stage": "one"}))
    flawed = {**made.metadata.properties, "read.split.target-size": "128MB", "icetower.guard": "of"}
    foreign = made.metadata.model_copy(update={"properties": flawed})
    location = Location(f"{made.metadata.location}/metadata/00009-foreign.metadata.json")
    catalog.files.write_new(location, foreign.to_json())
    named.register(catalog, TABLES, DEPARTURES, location, overwrite=True)
    at = now(catalog)
    mended = {"read.split.target-size": "134217728", "icetower.guard": "off", "stage": "two"}
    commit_to(catalog, SetProperties(updates=mended))

    restore(catalog, at)

    assert load_table(catalog).metadata.properties.items() >= {**mended, "stage": "one"}.items()


def test_settings_of_main_come_back_with_its_rows(catalog: Catalog) -> None:
    empty = table_in(catalog)
    before = now(catalog)
    first = head(append_to(catalog, empty))
    kept = SetSnapshotRef(
        ref_name="main", snapshot_id=first.snapshot_id, type="branch", min_snapshots_to_keep=7
    )
    commit_to(catalog, kept)
    at = now(catalog)
    restore(catalog, before)
    assert load_table(catalog).metadata.current_snapshot is None

    restore(catalog, at)

    assert load_table(catalog).metadata.snapshot_refs["main"].min_snapshots_to_keep == 7


def test_expired_snapshot_is_named_and_nothing_changes(catalog: Catalog) -> None:
    first = append_to(catalog, table_in(catalog))
    at = now(catalog)
    append_to(catalog, first)
    commit_to(catalog, RemoveSnapshots(snapshot_ids=(head(first).snapshot_id,)))
    before = load_table(catalog)

    with pytest.raises(RestoreRefused, match=str(head(first).snapshot_id)):
        restore(catalog, at)

    assert load_table(catalog) == before


def test_all_tables_are_restored_or_none(catalog: Catalog) -> None:
    other = type(DEPARTURES)(DEPARTURES.namespace, "other")
    for identifier in (DEPARTURES, other):
        append_to(catalog, table_in(catalog, identifier))
    at = now(catalog)
    for identifier in (DEPARTURES, other):
        append_to(catalog, load_table(catalog, identifier))
    doomed = load_table(catalog, other)
    first = next(iter(doomed.metadata.snapshots_by_id))
    before = load_table(catalog)
    tables_before = doomed

    commit_to(catalog, RemoveSnapshots(snapshot_ids=(first,)), identifier=other)
    with pytest.raises(RestoreRefused):
        restore(catalog, at, DEPARTURES, other)
    assert load_table(catalog) == before

    middle = str(tables_before.metadata.last_updated_ms)
    restored = restore(catalog, middle, DEPARTURES, other)
    assert [each.identifier for each in restored] == [DEPARTURES, other]


def test_dropped_renamed_and_new_tables_are_distinguished(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    at = now(catalog)
    elsewhere = type(DEPARTURES)(DEPARTURES.namespace, "elsewhere")
    named.rename(catalog, TABLES, DEPARTURES, elsewhere)
    with pytest.raises(RestoreRefused, match="elsewhere"):
        restore(catalog, at)
    append_to(catalog, named.load(catalog, TABLES, elsewhere))
    table_in(catalog)  # It has the old name, and is left alone.
    (restored,) = restore(catalog, at, elsewhere)
    assert (restored.identifier, len(named.load(catalog, TABLES, elsewhere).metadata.snapshots)) == (
        elsewhere,
        2,
    )
    assert named.load(catalog, TABLES, elsewhere).metadata.current_snapshot_id == restored.snapshot_id
    named.drop(catalog, TABLES, DEPARTURES)
    named.drop(catalog, TABLES, elsewhere)
    with pytest.raises(RestoreRefused, match="undrop id 2"):
        restore(catalog, at)
    table_in(catalog)
    with pytest.raises(RestoreRefused, match="undrop id 2"):
        restore(catalog, at)
    named.drop(catalog, TABLES, DEPARTURES)
    undrop(catalog, Wanted(id=2), NewName(name=DEPARTURES.name))
    restore(catalog, at)


def test_purged_table_cannot_come_back(catalog: Catalog) -> None:
    table_in(catalog)
    at = now(catalog)
    tables.purge_table(catalog, DEPARTURES)

    with pytest.raises(RestoreRefused, match="cannot come back"):
        restore(catalog, at)


@pytest.mark.parametrize("leave", [named.unregister, named.drop])
def test_table_that_was_registered_anew_says_what_helps(catalog: Catalog, leave: Any) -> None:
    then = append_to(catalog, table_in(catalog))
    at = now(catalog)
    append_to(catalog, then)
    location = load_table(catalog).location
    assert location is not None
    leave(catalog, TABLES, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, location)
    was = then.metadata.current_snapshot_id

    with pytest.raises(
        RestoreRefused, match=f"registered anew.*had then, {was}, or register .*: {then.location}$"
    ):
        restore(catalog, at)


def test_tables_without_uuid_are_not_taken_for_one_another(catalog: Catalog) -> None:
    location = nameless_table(catalog)
    named.register(catalog, TABLES, DEPARTURES, location)
    at = now(catalog)
    named.unregister(catalog, TABLES, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, location)

    with pytest.raises(RestoreRefused, match="that table is gone, and cannot come back"):
        restore(catalog, at)


def test_table_that_was_renamed_is_named_though_its_old_name_was_registered_for_it(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    at = now(catalog)
    location = load_table(catalog).location
    assert location is not None
    named.rename(catalog, TABLES, DEPARTURES, replace(DEPARTURES, name="elsewhere"))
    named.register(catalog, TABLES, DEPARTURES, location)

    with pytest.raises(RestoreRefused, match=r"that table has the name flights.elsewhere now"):
        restore(catalog, at)


def test_metadata_that_is_gone_is_spoken_of_plainly(catalog: Catalog) -> None:
    first = append_to(catalog, table_in(catalog))
    at = now(catalog)
    append_to(catalog, first)
    assert first.location is not None
    catalog.files.delete(first.location)

    with pytest.raises(PastIsGone, match="has been deleted since"):
        restore(catalog, at)


def test_bad_requests(catalog: Catalog) -> None:
    table_in(catalog)

    with pytest.raises(InvalidMoment, match="future"):
        restore(catalog, str(catalog.now_ms() + 3_600_000))
    with pytest.raises(InvalidMoment, match="history is kept"):
        restore(catalog, "1999-01-01")
    with pytest.raises(InvalidRequest, match="given twice"):
        restore(catalog, now(catalog), DEPARTURES, DEPARTURES)
    with pytest.raises(InvalidRequest, match="1 to 1000"):
        restore_tables(catalog, [], now(catalog), dry_run=False)
    with pytest.raises(InvalidRequest, match="1 to 1000"):
        restore_tables(catalog, [DEPARTURES] * (MOST_TABLES + 1), now(catalog), dry_run=False)
    with pytest.raises(NoSuchTable):
        restore(catalog, now(catalog), type(DEPARTURES)(DEPARTURES.namespace, "missing"))
