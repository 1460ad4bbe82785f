"""Where Icetower and the reference may differ, each with its reason: nothing else is forgiven."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.conformance.oracle.outcomes import Accepted, Outcome, Refused

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What both sides were asked."""

    base: Mapping[str, Any] = field(default_factory=dict)
    updates: Sequence[Json] = ()

    def added_snapshots(self) -> list[Json]:
        return [item["snapshot"] for item in self.updates if item["action"] == "add-snapshot"]

    def has(self, *actions: str) -> bool:
        return any(item["action"] in actions for item in self.updates)


@dataclass(frozen=True)
class Normalisation:
    """A change to both documents, after which they must be equal."""

    name: str
    reason: str
    change: Callable[[Json, Case], None]


@dataclass(frozen=True)
class RefusalDifference:
    """A refusal that only one side knows, told by that side's words."""

    name: str
    reason: str
    refused_by: Literal["icetower", "reference"]
    message: str
    applies: Callable[[Case], bool] = lambda _case: True


def _drop_update_time(document: Json, _case: Case) -> None:
    document.pop("last-updated-ms", None)


def _drop_rollback_times(document: Json, case: Case) -> None:
    known = [(entry["timestamp-ms"], entry["snapshot-id"]) for entry in case.base.get("snapshot-log", ())]
    added = {item["snapshot-id"] for item in case.added_snapshots()}
    after_rollback = False
    for entry in document.get("snapshot-log", ()):
        is_new = (entry["timestamp-ms"], entry["snapshot-id"]) not in known
        after_rollback |= is_new and entry["snapshot-id"] not in added
        if after_rollback:
            entry["timestamp-ms"] = "the time of the commit"


def _drop_log_of_passing_snapshots(document: Json, case: Case) -> None:
    removed = {snapshot_id for item in case.updates for snapshot_id in item.get("snapshot-ids", ())}
    if removed & {item["snapshot-id"] for item in case.added_snapshots()}:
        document["snapshot-log"] = document.get("snapshot-log", [])[-1:]


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


NORMALISATIONS = (
    Normalisation(
        "time of the update",
        "a clock's; besides, the reference takes the last added snapshot's time, Icetower always the commit's",
        _drop_update_time,
    ),
    Normalisation(
        "time of a rollback",
        "a clock's: a snapshot that was there before became current at the time of the commit, and what became "
        "current after it cannot have done so earlier",
        _drop_rollback_times,
    ),
    Normalisation(
        "log of a snapshot that came and went in one commit",
        "the reference cuts the whole log before it; Icetower only the entry that nobody ever saw",
        _drop_log_of_passing_snapshots,
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
)


def normalised(document: Json, case: Case) -> Json:
    """Return a copy of a document in which only real differences are left."""
    document = copy.deepcopy(document)
    for normalisation in NORMALISATIONS:
        normalisation.change(document, case)
    return document


REFUSALS: tuple[RefusalDifference, ...] = (
    RefusalDifference(
        "reused and therefore added last",
        "two writers make the same change: the second finds it there, and must not be refused for that",
        "reference",
        r"Cannot set last added (schema|spec|sort order): no (schema|spec|sort order) has been added",
        lambda case: case.has("add-schema", "add-spec", "add-sort-order"),
    ),
    RefusalDifference(
        "partition spec without id",
        "the REST API's description makes it optional, because the catalog chooses it",
        "reference",
        r"Cannot parse missing int: spec-id",
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
        "property values that clients fail on",
        "the reference finds out when it uses them",
        "icetower",
        r"Table property .* must be ",
    ),
)


def changes_nothing(case: Case) -> bool:
    """Tell whether the reference may count as a change what changes nothing: Icetower then writes no new file.

    Removing specs or schemas that are not there, and setting the location with slashes behind it.
    """
    return case.has("remove-partition-specs", "remove-schemas", "set-location")


def excuse(case: Case, reference: Outcome, icetower: Outcome) -> RefusalDifference | None:
    """Return the agreed difference that explains why only one side refuses."""
    refusing = "reference" if isinstance(reference, Refused) else "icetower"
    refused = reference if isinstance(reference, Refused) else icetower
    assert isinstance(refused, Refused)
    for difference in REFUSALS:
        if (
            difference.refused_by == refusing
            and re.match(difference.message, refused.message)
            and difference.applies(case)
        ):
            return difference
    return None


EXACT_MESSAGES = tuple(
    re.compile(pattern)
    for pattern in (
        r"Cannot downgrade v\d+ table to v\d+",
        r"Cannot upgrade table to unsupported format version",
        r"Cannot set last added (schema|spec|sort order): no (schema|spec|sort order) has been added",
        r"Cannot set current schema to unknown schema: -?\d+",
        r"Cannot remove the (default partition spec|current schema)",
        r"Attempting to add a snapshot before a (schema|partition spec|sort order) is added",
        r"Snapshot already exists for id: -?\d+",
        r"Validation failed, please retry: Cannot add snapshot with sequence number \d+ older than last sequence "
        r"number \d+",
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
)
"""What clients and their tests look for in a message; the rest of a message is each side's own."""


STALE = "Validation failed, please retry: Cannot add (a )?snapshot"
"""A sequence number or row id that another commit has passed: 409 and a retry heal it. This reference, 1.10,
still answers 400; later ones answer 409 with the words that stand before it here."""


def check_agreement(case: Case, reference: Outcome, icetower: Outcome) -> None:
    """Fail unless both sides say the same, or differ as agreed."""
    if isinstance(reference, Refused) and isinstance(icetower, Refused):
        check_same_refusal(reference, icetower)
    elif isinstance(reference, Accepted) and isinstance(icetower, Accepted):
        if not (reference.has_changes and not icetower.has_changes and changes_nothing(case)):
            assert icetower.has_changes == reference.has_changes
        ours, theirs = normalised(icetower.document, case), normalised(reference.document, case)
        if not icetower.has_changes:
            ours.pop("metadata-log", None)
            theirs.pop("metadata-log", None)
        assert ours == theirs
    else:
        assert excuse(case, reference, icetower) is not None, f"\nreference: {reference}\nicetower:  {icetower}"


def check_same_refusal(reference: Refused, icetower: Refused) -> None:
    """Fail if both refuse the same step in ways that a client can tell apart.

    A list may hold several faults, and each side is free to notice a later one first.
    """
    if reference.step != icetower.step:
        return
    if not re.match(STALE, icetower.message):
        assert icetower.is_conflict == reference.is_conflict, f"\nreference: {reference}\nicetower:  {icetower}"
    for pattern in EXACT_MESSAGES:
        expected = pattern.match(reference.message)
        if expected is not None:
            found = pattern.match(icetower.message)
            assert found is not None, f"\nreference: {reference}\nicetower:  {icetower}"
            assert found[0] == expected[0]
