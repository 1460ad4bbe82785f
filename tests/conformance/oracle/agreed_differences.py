"""Where applying updates may differ from the reference, each time with the reason: nothing else is forgiven."""

from __future__ import annotations

import itertools

from tests.conformance.oracle.differences import Agreement, Case, Normalisation, RefusalDifference
from tests.conformance.oracle.outcomes import Json

ONE_MINUTE_MS = 60_000
"""By so much the entries of a log may be out of order."""


def _drop_update_time(document: Json, _case: Case) -> None:
    document.pop("last-updated-ms", None)


def _drop_rollback_times(document: Json, case: Case) -> None:
    known = [(entry["timestamp-ms"], entry["snapshot-id"]) for entry in case.base.get("snapshot-log", ())]
    added = {item["snapshot-id"]: item["timestamp-ms"] for item in case.added_snapshots()}
    latest = max((time_ms for time_ms, _id in known), default=0)
    is_moved = False
    for time_ms in added.values():
        is_moved |= time_ms < latest - ONE_MINUTE_MS
        latest = max(latest, time_ms)
    for entry in document.get("snapshot-log", ()):
        is_new = (entry["timestamp-ms"], entry["snapshot-id"]) not in known
        is_moved |= is_new and entry["snapshot-id"] not in added
        if is_new and is_moved:
            entry["timestamp-ms"] = "the time of the commit"


def _drop_log_of_passing_snapshots(document: Json, case: Case) -> None:
    removed = {snapshot_id for item in case.updates for snapshot_id in item.get("snapshot-ids", ())}
    if removed & {item["snapshot-id"] for item in case.added_snapshots()}:
        document["snapshot-log"] = document.get("snapshot-log", [])[-1:]


def _drop_refs_to_twins(document: Json, case: Case) -> None:
    removed: set[int] = set()
    for item in case.updates:
        removed.update(item.get("snapshot-ids", ()))
        if item["action"] == "add-snapshot" and item["snapshot"]["snapshot-id"] in removed:
            for name in ("refs", "current-snapshot-id", "snapshot-log"):
                document.pop(name, None)


def _drop_absent_current_snapshot(document: Json, _case: Case) -> None:
    if document.get("current-snapshot-id", -1) in (None, -1):
        document.pop("current-snapshot-id", None)


def _sort_statistics(document: Json, _case: Case) -> None:
    for name in ("statistics", "partition-statistics"):
        document.get(name, []).sort(key=lambda item: item["snapshot-id"])


def _sort_identifiers(document: Json, _case: Case) -> None:
    for schema in [*document.get("schemas", ()), document.get("schema") or {}]:
        ids = sorted(schema.pop("identifier-field-ids", None) or ())
        if ids:
            schema["identifier-field-ids"] = ids


def _drop_zero_sequence_numbers(document: Json, _case: Case) -> None:
    for item in document.get("snapshots", ()):
        if item.get("sequence-number") == 0:
            del item["sequence-number"]


def _lift_last_sequence_number(document: Json, case: Case) -> None:
    if "last-sequence-number" in document:
        numbers = [item.get("sequence-number", 0) for item in case.added_snapshots()]
        document["last-sequence-number"] = max(
            document["last-sequence-number"], case.base.get("last-sequence-number", 0), *numbers, 0
        )


def _lift_next_row_id(document: Json, case: Case) -> None:
    if "next-row-id" in document:
        ends = [item.get("first-row-id", 0) + item.get("added-rows", 0) for item in case.added_snapshots()]
        document["next-row-id"] = max(document["next-row-id"], *ends, 0)


def _drop_empty_properties(document: Json, _case: Case) -> None:
    if not document.get("properties"):
        document.pop("properties", None)


def _lower_uuid(document: Json, _case: Case) -> None:
    for name in ("table-uuid", "view-uuid"):
        uuid = document.pop(name, None)
        if uuid is not None:
            document[name] = uuid.lower()


def _sort_versions(document: Json, _case: Case) -> None:
    document.get("versions", []).sort(key=lambda item: item["version-id"])


def _drop_reactivation_times(document: Json, case: Case) -> None:
    log = document.get("version-log", [])
    known = [(entry["timestamp-ms"], entry["version-id"]) for entry in case.base.get("version-log", ())]
    added = [
        item["view-version"]["timestamp-ms"] for item in case.updates if item["action"] == "add-view-version"
    ]
    for entry in log:
        is_new = (entry["timestamp-ms"], entry["version-id"]) not in known
        if is_new and entry["timestamp-ms"] not in added:
            entry["timestamp-ms"] = "the time of the commit"
    repeated = [pair for pair in itertools.pairwise(log) if pair[0]["version-id"] == pair[1]["version-id"]]
    for _first, second in repeated:
        log.remove(second)


def _drop_schema_of_new_versions(document: Json, case: Case) -> None:
    known = {item["version-id"] for item in case.base.get("versions", ())}
    if case.finds_schema_there():
        for item in document.get("versions", ()):
            if item["version-id"] not in known:
                del item["schema-id"]


def _drop_ids_given_to_partition_fields(document: Json, case: Case) -> None:
    sent = [
        field for item in case.updates if item["action"] == "add-spec" for field in item["spec"]["fields"]
    ]
    # Version 1 does not track ids: there both sides count from 1000.
    if document.get("format-version") == 1 or all("field-id" in field for field in sent):
        return
    document.pop("last-partition-id", None)
    known = {spec["spec-id"] for spec in case.base.get("partition-specs", ())}
    for spec in document.get("partition-specs", ()):
        for field in spec["fields"] if spec["spec-id"] not in known else ():
            del field["field-id"]


def _drop_what_came_after_removals(document: Json, case: Case) -> None:
    """The fields that the quirk below reaches, if a kind was added after one of its kind was removed."""
    removed: set[str] = set()
    for item in case.updates:
        match item["action"]:
            case "remove-schemas" | "remove-partition-specs":
                removed.add(item["action"])
            case "add-schema" if "remove-schemas" in removed:
                for name in ("schema", "schemas", "current-schema-id"):
                    document.pop(name, None)
            case "add-spec" if "remove-partition-specs" in removed:
                for name in ("partition-spec", "partition-specs", "default-spec-id", "last-partition-id"):
                    document.pop(name, None)


NORMALISATIONS = (
    Normalisation(
        "time of the update",
        "a clock's; besides, the reference takes the last added snapshot's time, Icetower always the commit's",
        _drop_update_time,
    ),
    Normalisation(
        "time of a rollback",
        "a clock's: a snapshot that was there before became current at the time of the commit; what became current "
        "after it, or comes from a clock that is behind, is not logged before it",
        _drop_rollback_times,
    ),
    Normalisation(
        "log of a snapshot that came and went in one commit",
        "the reference cuts the whole log before it; Icetower only the entry that nobody ever saw",
        _drop_log_of_passing_snapshots,
    ),
    Normalisation(
        "refs to a snapshot that was removed and added again",
        "in the reference they go with the first one; in Icetower only what comes out must fit together",
        _drop_refs_to_twins,
    ),
    Normalisation(
        "no current snapshot",
        "absent, null and -1 mean the same; Icetower writes no nulls, because older readers stumble over them",
        _drop_absent_current_snapshot,
    ),
    Normalisation(
        "order of statistics files",
        "they are looked up by snapshot; the reference writes them in the order of a hash table",
        _sort_statistics,
    ),
    Normalisation(
        "order of identifier fields",
        "they are a set, and an empty set may be left out",
        _sort_identifiers,
    ),
    Normalisation(
        "sequence number 0",
        "means the same as none: snapshots of v1 have none",
        _drop_zero_sequence_numbers,
    ),
    Normalisation(
        "last sequence number after a snapshot without parent",
        "the reference lets it fall to the snapshot's; in Icetower it never falls",
        _lift_last_sequence_number,
    ),
    Normalisation(
        "next row id after a snapshot that passed some over",
        "the reference counts on from its own number, and gives the ids of the snapshot's rows again",
        _lift_next_row_id,
    ),
    Normalisation(
        "schemas and specs added after some were removed",
        "the reference still knows the ids of the removed ones, and takes a new one that gets such an id for it",
        _drop_what_came_after_removals,
    ),
    Normalisation(
        "partition fields that are sent without ids",
        "the reference counts from 1000 in each spec, so that one id means two fields, and its own readers refuse the "
        "table; in Icetower a field keeps the id that it has, and a new one gets a new id",
        _drop_ids_given_to_partition_fields,
    ),
    Normalisation("no properties", "an empty object may be left out", _drop_empty_properties),
    Normalisation(
        "spelling of the uuid",
        "null is none, and letters are compared without case; the reference replaces a uuid by the same one in others",
        _lower_uuid,
    ),
    Normalisation(
        "order of view versions",
        "they are looked up by id; the reference turns them round when it forgets old ones",
        _sort_versions,
    ),
    Normalisation(
        "time of a view version that is current again",
        "a clock's; besides, the reference logs a version again that was current before and after the commit",
        _drop_reactivation_times,
    ),
    Normalisation(
        "schema of a view version after a schema that was there",
        "what was there counts as added last in Icetower; the reference goes back to the one added before",
        _drop_schema_of_new_versions,
    ),
)

REFUSALS = (
    RefusalDifference(
        "encryption before version 3",
        "later versions of the reference refuse it in creations: earlier tables have no place for the keys",
        "icetower",
        r"Invalid properties for v[12]: encryption\.key-id",
    ),
    RefusalDifference(
        "what clients only show as a property",
        "once stored, `format-version` makes the reference's clients upgrade the table with the next property",
        "icetower",
        r"Table property [a-z-]+ cannot be set, as it only shows what the table is",
    ),
    RefusalDifference(
        "reused and therefore added last",
        "two writers make the same change: the second finds it there, and must not be refused for that",
        "reference",
        r"Cannot set last added (schema|spec|sort order): no (schema|spec|sort order) has been added",
        lambda case: case.has("add-schema", "add-spec", "add-sort-order"),
    ),
    RefusalDifference(
        "view version that was there",
        "as with schemas: the second writer of the same change must not be refused",
        "reference",
        r"Cannot set last version id: no current version id has been set",
        lambda case: case.has("add-view-version"),
    ),
    RefusalDifference(
        "new view version with an id that is taken and the schema that was added last",
        "this reference forgets the new id on its way when it looks up the schema; later ones do not",
        "reference",
        r"Cannot set current version to unknown version: |Multiple entries with same key: \d+=ImmutableViewVersion",
        lambda case: any(
            item["action"] == "add-view-version" and item["view-version"]["schema-id"] == -1
            for item in case.updates
        ),
    ),
    RefusalDifference(
        "the same uuid in other letters",
        "uuids are compared without case everywhere else",
        "reference",
        r"Cannot reassign uuid",
        lambda case: (
            case.base["view-uuid"] in [item["uuid"].lower() for item in case.updates if "uuid" in item]
        ),
    ),
    RefusalDifference(
        "partition spec without id",
        "the REST API's description makes it optional, because the catalog chooses it",
        "reference",
        r"Cannot parse missing int: spec-id",
    ),
    RefusalDifference(
        "the id of a sort order that is sent",
        "the catalog chooses it, whatever the request says",
        "reference",
        r"Sort order ID 0 is reserved for unsorted order|Unsorted order ID must be 0",
    ),
    RefusalDifference(
        "snapshot log out of order",
        "a writer's clock that is behind by over a minute must not stop its commits: the log takes the later time",
        "reference",
        r"\[BUG\] Expected sorted snapshot log entries\.|Invalid update timestamp \d+: before",
        lambda case: case.has("add-snapshot", "set-snapshot-ref"),
    ),
    RefusalDifference(
        "more unknown snapshots than known ones",
        "unknown ids are passed over; the reference computes a negative list size here",
        "reference",
        r"arraySize cannot be negative but was: -\d+",
        lambda case: case.has("remove-snapshots"),
    ),
    RefusalDifference(
        "snapshot without parent behind the last sequence number",
        "the reference lowers the table's number, and then finds older snapshots above it",
        "reference",
        r"Invalid snapshot with sequence number \d+ greater than last sequence number \d+",
        lambda case: any("parent-snapshot-id" not in item for item in case.added_snapshots()),
    ),
    RefusalDifference(
        "a type that an old partition spec does not fit",
        "the reference writes such a table, and cannot read it afterwards",
        "icetower",
        r"Cannot change the type of .*: partition spec \d+ applies",
    ),
    RefusalDifference(
        "row ids that an earlier snapshot of the same commit passed over",
        "the table counts on from that snapshot; the reference counts on from its own number",
        "icetower",
        r"Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: \d+ < \d+",
        lambda case: len(case.added_snapshots()) > 1,
    ),
    RefusalDifference(
        "another initial default of a column that is there",
        "it cannot change, as rows of older files have it; the reference leaves that to its clients",
        "icetower",
        r"Cannot change the initial default of .*: it is what rows of older files have",
    ),
    RefusalDifference(
        "another type of a column that files are partitioned by",
        "partition values would be others, so the table format forbids it; the reference leaves that to its clients",
        "icetower",
        r"Cannot change the type of .* from .* to .*: .* has other values for it",
    ),
    RefusalDifference(
        "a date that becomes a timestamp under its year, month or day",
        "their values stay the same, so the table format allows it, and the reference reads the result",
        "reference",
        r"Invalid source type timestamp(_ns)? for transform: (year|month|day)",
        lambda case: case.has("set-current-schema"),
    ),
    RefusalDifference(
        "an order before any schema",
        "there is nothing to bind it to; the reference does not mind as long as it sorts by nothing",
        "icetower",
        r"The table has no current schema yet",
        lambda case: not case.base,
    ),
    RefusalDifference(
        "a sequence number in version 1, upgraded by the same commit",
        "a snapshot must fit the table it is added to; the reference looks only at what comes out",
        "icetower",
        r"Cannot add snapshot with sequence number \d+ to a v1 table",
        lambda case: case.has("upgrade-format-version"),
    ),
    RefusalDifference(
        "format version 4",
        "it is not finished: Icetower knows versions 1 to 3",
        "icetower",
        r"Cannot upgrade table to unsupported format version: v4 \(supported: v3\)",
    ),
    RefusalDifference(
        "another uuid",
        "a table keeps its uuid for life",
        "icetower",
        r"Cannot reassign uuid: ",
    ),
    RefusalDifference(
        "main as a tag",
        "newer versions of the reference refuse it too",
        "icetower",
        r"Cannot set main to a tag: it must be a branch",
    ),
    RefusalDifference(
        "a ref left without its snapshot",
        "the reference silently drops it, also one that somebody else made meanwhile",
        "icetower",
        r"Cannot remove snapshot \d+: (branch|tag) .* refers to it",
    ),
    RefusalDifference(
        "a table without location",
        "the reference makes it, and cannot read it afterwards",
        "icetower",
        r"The table has no location: the updates need a set-location",
    ),
    RefusalDifference(
        "a view version without a query",
        "nobody could read such a view",
        "icetower",
        r"Invalid view version: it has no representations",
    ),
    RefusalDifference(
        "a snapshot from the far future",
        "the reference takes it, and then refuses every later commit until that time has come",
        "icetower",
        r"Cannot add snapshot -?\d+: timestamp-ms \d+ is more than a day ahead of",
    ),
    RefusalDifference(
        "an operation that the spec does not know",
        "PyIceberg cannot load a table that has such a snapshot",
        "icetower",
        r"Cannot add snapshot -?\d+: operation .* is none of",
    ),
    RefusalDifference(
        "a partition field with the id of another one",
        "the reference takes it, and its readers refuse the table",
        "icetower",
        r"Cannot add partition field .*: its id \d+ is that of ",
    ),
    RefusalDifference(
        "partition field ids below 1000",
        "they are those of manifests' own fields, which the reference finds out when it writes the next manifest",
        "icetower",
        r"Cannot add partition field .*: field id -?\d+ is below 1000",
    ),
    RefusalDifference(
        "property values that clients fail on",
        "the reference finds out when it uses them",
        "icetower",
        r"Table property .* must be ",
    ),
)


def _changes_nothing(case: Case) -> bool:
    """Tell whether the reference may count as a change what changes nothing: Icetower then writes no new file.

    Removing specs or schemas that are not there, setting the location with slashes behind it, the uuid in other
    letters, and a view version that was current before.
    """
    return case.has(
        "remove-partition-specs", "remove-schemas", "set-location", "assign-uuid", "set-current-view-version"
    )


EXACT_MESSAGES = (
    r"Cannot downgrade v\d+ table to v\d+",
    r"Cannot upgrade table to unsupported format version",
    r"Cannot set last added (schema|spec|sort order): no (schema|spec|sort order) has been added",
    r"Cannot set current schema to unknown schema: -?\d+",
    r"Cannot remove the (default partition spec|current schema)",
    r"Attempting to add a snapshot before a (schema|partition spec|sort order) is added",
    r"Snapshot already exists for id: -?\d+",
    r"Validation failed, please retry: Cannot add snapshot with sequence number \d+ older than last sequence number ",
    r"Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: \d+ < \d+",
    r"Cannot add a snapshot: first-row-id is null",
    r"Cannot set .* to unknown snapshot: -?\d+",
    r"Invalid schema for v\d+:",
    r"Requirement failed: .*",
    r"Cannot find source column for partition field: ",
    r"Cannot reassign uuid",
    r"Cannot set last version id: no current version id has been set",
    r"Cannot set current version to unknown version: -?\d+",
    r"Cannot add version with unknown schema: -?\d+",
    r"Invalid view version: Cannot add multiple queries for dialect .*",
    r"Cannot replace view due to loss of view dialects",
)
"""What clients and their tests look for in a message; the rest of a message is each side's own."""

APPLYING = Agreement(NORMALISATIONS, REFUSALS, EXACT_MESSAGES, _changes_nothing)
