"""Every agreed difference is a real one: an example of each, so that none stays listed after it is gone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import pytest

from tests.conformance.oracle import engine
from tests.conformance.oracle.agreed_differences import APPLYING
from tests.conformance.oracle.creation_differences import CREATING
from tests.conformance.oracle.differences import Agreement, Case
from tests.conformance.oracle.outcomes import Json, Outcome, Refused
from tests.conformance.oracle.plain_documents import (
    COLUMNS,
    OTHER_UUID,
    schema_of,
    snapshot,
    table,
    view,
    view_version,
)
from tests.conformance.oracle.reading_differences import READING
from tests.conformance.oracle.reference import Reference
from tests.conformance.oracle.table_documents import START_MS, TABLE_LOCATION, UUID
from tests.conformance.oracle.update_lists import LAST_ADDED, act

pytestmark = pytest.mark.spark

NOW_MS = START_MS + 100_000
YEARS_MS = 500_000_000_000
ID, NAME, DAY = COLUMNS
MAIN = {"ref_name": "main", "type": "branch"}
NEW_TABLE = [
    act("assign-uuid", uuid=UUID),
    act("add-schema", schema=schema_of(*COLUMNS)),
    act("add-spec", spec={"spec-id": 0, "fields": []}),
    act("add-sort-order", sort_order={"order-id": 0, "fields": []}),
    act("set-location", location=TABLE_LOCATION),
]


@dataclass(frozen=True)
class Example:
    """Updates of a table or view; without a base, of a new one."""

    updates: list[Json] = field(default_factory=list)
    base: Json = field(default_factory=table)


def partition(name: str, transform: str, source_id: int, field_id: int = 1001) -> Json:
    """Return a partition spec of one field."""
    partition_field = {"name": name, "transform": transform, "source-id": source_id, "field-id": field_id}
    return {"spec-id": 2, "fields": [partition_field]}


def new_columns(*fields: Json) -> list[Json]:
    """Return the updates that make these the table's columns."""
    return [act("add-schema", schema=schema_of(*fields)), act("set-current-schema", schema_id=LAST_ADDED)]


def new_version(version: Json, *before: Json) -> list[Json]:
    """Return the updates that make this the view's current version."""
    return [
        *before,
        act("add-view-version", view_version=version),
        act("set-current-view-version", view_version_id=LAST_ADDED),
    ]


def by_day() -> Json:
    """Return a table that is partitioned by the year of a date."""
    return table(partition_specs=[{**partition("y", "year", 3), "spec-id": 0}])


APPLIED = {
    "reused and therefore added last": Example(new_columns(*COLUMNS[:1])),
    "view version that was there": Example(new_version(view_version(1)), view()),
    "new view version with an id that is taken and the schema that was added last": Example(
        new_version(
            {**view_version(7), "version-id": 1, "schema-id": LAST_ADDED},
            act("add-schema", schema=schema_of(ID)),
        ),
        view(),
    ),
    "the same uuid in other letters": Example([act("assign-uuid", uuid=UUID.upper())], view()),
    "partition spec without id": Example([act("add-spec", spec={"fields": []})]),
    "the id of a sort order that is sent": Example(
        [act("add-sort-order", sort_order={"order-id": 5, "fields": []})]
    ),
    "snapshot log out of order": Example(
        [
            act("add-snapshot", snapshot=snapshot(3, timestamp_ms=START_MS - 100_000)),
            act("set-snapshot-ref", **MAIN, snapshot_id=3),
        ]
    ),
    "more unknown snapshots than known ones": Example([act("remove-snapshots", snapshot_ids=[7, 8, 9])]),
    "snapshot without parent behind the last sequence number": Example(
        [act("add-snapshot", snapshot={**snapshot(1), "snapshot-id": 9})]
    ),
    "a type that an old partition spec does not fit": Example(new_columns(ID, {**NAME, "type": "boolean"})),
    "row ids that an earlier snapshot of the same commit passed over": Example(
        [
            act("add-snapshot", snapshot=snapshot(number, 3, first_row_id=first_row_id, added_rows=0))
            for number, first_row_id in ((3, 22), (4, 21))
        ],
        table(3),
    ),
    "another initial default of a column that is there": Example(
        new_columns(ID, NAME, DAY), table(3, schemas=[schema_of(ID, {**NAME, "initial-default": "x"}, DAY)])
    ),
    "another type of a column that files are partitioned by": Example(
        new_columns(ID, {**DAY, "type": "timestamp"}),
        table(partition_specs=[{**partition("b", "bucket[4]", 3), "spec-id": 0}]),
    ),
    "a date that becomes a timestamp under its year, month or day": Example(
        new_columns(ID, {**DAY, "type": "timestamp"}), by_day()
    ),
    "an order before any schema": Example([NEW_TABLE[0], NEW_TABLE[3], *NEW_TABLE[1:3], NEW_TABLE[4]], {}),
    "a sequence number in version 1, upgraded by the same commit": Example(
        [act("add-snapshot", snapshot=snapshot(1)), act("upgrade-format-version", format_version=2)],
        table(1, 0),
    ),
    "format version 4": Example([act("upgrade-format-version", format_version=4)]),
    "another uuid": Example([act("assign-uuid", uuid=OTHER_UUID)]),
    "main as a tag": Example([act("set-snapshot-ref", ref_name="main", type="tag", snapshot_id=2)]),
    "a ref left without its snapshot": Example([act("remove-snapshots", snapshot_ids=[1])]),
    "a table without location": Example(NEW_TABLE[:-1], {}),
    "a view version without a query": Example(
        new_version({**view_version(2), "representations": []}),
        view(properties={"replace.drop-dialect.allowed": "true"}),
    ),
    "a snapshot from the far future": Example(
        [act("add-snapshot", snapshot=snapshot(3, timestamp_ms=START_MS + YEARS_MS))]
    ),
    "an operation that the spec does not know": Example(
        [act("add-snapshot", snapshot=snapshot(3, summary={"operation": "improve"}))]
    ),
    "a partition field with the id of another one": Example(
        [act("add-spec", spec=partition("p", "identity", 1, 1000))]
    ),
    "partition field ids below 1000": Example([act("add-spec", spec=partition("p", "identity", 1, 999))]),
    "encryption before version 3": Example([act("set-properties", updates={"encryption.key-id": "k"})]),
    "what clients only show as a property": Example([act("set-properties", updates={"format-version": "3"})]),
    "property values that clients fail on": Example(
        [act("set-properties", updates={"gc.enabled": "perhaps"})]
    ),
}


@pytest.mark.parametrize("name", [difference.name for difference in APPLYING.refusals])
def test_only_one_side_refuses_the_updates(reference: Reference, name: str) -> None:
    example = APPLIED[name]

    check_refusal(APPLYING, name, Case(example.base, example.updates), *apply(reference, example))


CREATED = {
    "format versions that are none": {"format-version": "4"},
}


@pytest.mark.parametrize("name", CREATED)
def test_only_one_side_refuses_the_new_table(reference: Reference, name: str) -> None:
    request = (schema_of(*COLUMNS), None, None, TABLE_LOCATION, CREATED[name])

    theirs = reference.new_table(*request)
    ours = engine.new_table(*request, UUID, NOW_MS)

    check_refusal(CREATING, name, Case(), theirs, ours)


def test_every_way_to_differ_in_new_tables_has_an_example() -> None:
    names = {difference.name for difference in CREATING.refusals}

    assert names == {*APPLIED, *CREATED}


def old_table(**changes: object) -> Json:
    """Return a table of version 1 with the single schema and spec."""
    return table(1, 0, **{"schema": schema_of(*COLUMNS), "partition_spec": [], **changes})


READ = {
    "a default spec or order that is not there": table(default_spec_id=7),
    "a log that is no list": table(metadata_log=None),
    "a broken single schema or spec of version 1": old_table(schema=7),
    "a uuid that is none": table(table_uuid="seven"),
    "another format version": table(format_version=4),
    "kinds of refs in capitals": table(refs={"main": {"snapshot-id": 2, "type": "BRANCH"}}),
    "a view whose parts do not fit together": view(current_version_id=7),
    "a schema of a view without a proper id": view(schemas=[{**schema_of(*COLUMNS), "schema-id": None}]),
    "numbers below zero": table(schemas=[schema_of({**ID, "id": -5}), schema_of(ID, schema_id=1)]),
    "a level of a namespace that is null": view(versions=[{**view_version(1), "default-namespace": [None]}]),
    "null in place of nothing": table(refs=None),
    "an empty list of specs or orders": old_table(partition_specs=[]),
    "contents that were checked when they came in": table(
        schemas=[schema_of(*COLUMNS, {**ID, "name": "twin"}), schema_of(ID, schema_id=1)]
    ),
    "representations of views that are not SQL": view(
        versions=[{**view_version(1), "representations": [{"type": "plan", "tree": {}}]}]
    ),
}


@pytest.mark.parametrize("name", [difference.name for difference in READING.refusals])
def test_only_one_side_refuses_the_document(reference: Reference, name: str) -> None:
    document = READ[name]

    check_refusal(READING, name, Case(document), *read(reference, document))


def check_refusal(agreement: Agreement, name: str, asked: Case, theirs: Outcome, ours: Outcome) -> None:
    (difference,) = [item for item in agreement.refusals if item.name == name]
    refusing, other = (ours, theirs) if difference.refused_by == "icetower" else (theirs, ours)

    assert isinstance(refusing, Refused), (theirs, ours)
    assert not isinstance(other, Refused), (theirs, ours)
    assert agreement.excuse(asked, difference.refused_by, refusing) == difference, refusing


CHANGED = {
    "time of the update": Example([act("set-properties", updates={"a": "b"})]),
    "time of a rollback": Example([act("set-snapshot-ref", **MAIN, snapshot_id=1)]),
    "log of a snapshot that came and went in one commit": Example(
        [
            act("add-snapshot", snapshot=snapshot(3)),
            act("set-snapshot-ref", **MAIN, snapshot_id=3),
            act("set-snapshot-ref", **MAIN, snapshot_id=2),
            act("remove-snapshots", snapshot_ids=[3]),
        ]
    ),
    "refs to a snapshot that was removed and added again": Example(
        [
            act("remove-snapshots", snapshot_ids=[1]),
            act("add-snapshot", snapshot={**snapshot(3), "snapshot-id": 1}),
        ]
    ),
    "no current snapshot": Example([act("remove-snapshot-ref", ref_name="main")], table(3)),
    "order of statistics files": Example(
        [
            act("set-partition-statistics", partition_statistics=file)
            for file in (
                {"snapshot-id": snapshot_id, "statistics-path": "s3://b/s", "file-size-in-bytes": 1}
                for snapshot_id in (17, 2, 1)
            )
        ]
    ),
    "order of identifier fields": Example(
        [act("add-schema", schema={**schema_of(*COLUMNS), "identifier-field-ids": []})],
        table(schemas=[schema_of(ID)]),
    ),
    "sequence number 0": Example(
        [act("add-snapshot", snapshot=snapshot(1, sequence_number=0))],
        table(2, 0),
    ),
    "last sequence number after a snapshot without parent": Example(
        [act("add-snapshot", snapshot=snapshot(1, sequence_number=3))], table(2, 0, last_sequence_number=5)
    ),
    "next row id after a snapshot that passed some over": Example(
        [act("add-snapshot", snapshot=snapshot(3, 3, first_row_id=22))], table(3)
    ),
    "schemas and specs added after some were removed": Example(
        [
            act("remove-schemas", schema_ids=[1]),
            act("add-schema", schema=schema_of(ID, {**NAME, "type": "binary"})),
        ]
    ),
    "partition fields that are sent without ids": Example(
        [
            act(
                "add-spec",
                spec={"spec-id": 2, "fields": [{"name": "p", "transform": "identity", "source-id": 1}]},
            )
        ]
    ),
    "no properties": Example([act("set-location", location="s3://b/v")], view()),
    "spelling of the uuid": Example(
        [act("assign-uuid", uuid=UUID.upper()), act("set-properties", updates={"a": "b"})]
    ),
    "order of view versions": Example(
        [act("set-properties", updates={"version.history.num-entries": "2"})],
        view(
            versions=[view_version(number) for number in (1, 2, 3)],
            current_version_id=3,
            version_log=[{"timestamp-ms": START_MS + 3, "version-id": 3}],
        ),
    ),
    "time of a view version that is current again": Example(
        [act("set-current-view-version", view_version_id=1)],
        view(versions=[view_version(1), view_version(2)], current_version_id=2),
    ),
    "schema of a view version after a schema that was there": Example(
        new_version(
            view_version(2, LAST_ADDED),
            act("add-schema", schema=schema_of(ID)),
            act("add-schema", schema=schema_of(*COLUMNS)),
        ),
        view(),
    ),
}


@pytest.mark.parametrize("name", [item.name for item in APPLYING.normalisations])
def test_the_tables_differ_without_this_normalisation(reference: Reference, name: str) -> None:
    example = CHANGED[name]

    check_needed(APPLYING, name, Case(example.base, example.updates), *apply(reference, example))


READ_DIFFERENTLY = {
    "fields from the future": table(**{"x-from-the-future": 1}),
    "the single schema and spec of version 1": old_table(schema=schema_of(*COLUMNS[:2])),
    "a main branch that was not written down": table(refs={}),
    "a summary without its operation": table(
        snapshots=[snapshot(1), snapshot(2, summary={"added-records": "1"})]
    ),
    "added rows without a first row id": table(3, snapshots=[snapshot(1, 3), snapshot(2, added_rows=10)]),
    "empty properties": table(
        3, encryption_keys=[{"key-id": "k", "encrypted-key-metadata": "aGVsbG8=", "properties": {}}]
    ),
    "counters lower than the ids in use": table(last_partition_id=5),
}


@pytest.mark.parametrize(
    "name", [item.name for item in READING.normalisations if item not in APPLYING.normalisations]
)
def test_what_was_read_differs_without_this_normalisation(reference: Reference, name: str) -> None:
    document = READ_DIFFERENTLY[name]

    check_needed(READING, name, Case(document), *read(reference, document))


def check_needed(agreement: Agreement, name: str, asked: Case, theirs: Outcome, ours: Outcome) -> None:
    others = tuple(item for item in agreement.normalisations if item.name != name)
    without = dataclasses.replace(agreement, normalisations=others)

    agreement.check(asked, theirs, ours)
    with pytest.raises(AssertionError):
        without.check(asked, theirs, ours)


def apply(reference: Reference, example: Example) -> tuple[Outcome, Outcome]:
    if not example.base:
        return reference.create(example.updates), engine.create(example.updates, NOW_MS)
    if "view-uuid" in example.base:
        theirs = reference.commit_view(example.base, example.updates)
        return theirs, engine.commit_view(example.base, example.updates, NOW_MS)
    location = f"{TABLE_LOCATION}/metadata/1.json"
    theirs = reference.commit(example.base, location, example.updates)
    return theirs, engine.commit(example.base, location, example.updates, NOW_MS)


def read(reference: Reference, document: Json) -> tuple[Outcome, Outcome]:
    if "view-uuid" in document:
        return reference.read_view(document), engine.read_view(document)
    return reference.read_table(document), engine.read_table(document)
