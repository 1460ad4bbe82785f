"""Where reading a metadata document may differ from the reference, each time with the reason."""

from __future__ import annotations

from typing import Any

from tests.conformance.oracle.agreed_differences import NORMALISATIONS as APPLYING_NORMALISATIONS
from tests.conformance.oracle.differences import Agreement, Case, Normalisation, RefusalDifference
from tests.conformance.oracle.outcomes import Json
from tests.conformance.oracle.reading_cases import UNKNOWN_FIELD


def _drop_unknown(document: Json, _case: Case) -> None:
    _drop_below(document)


def _drop_below(value: Any) -> None:
    if isinstance(value, dict):
        value.pop(UNKNOWN_FIELD, None)
        for item in value.values():
            _drop_below(item)
    elif isinstance(value, list):
        for item in value:
            _drop_below(item)


def _drop_single_schema_and_spec(document: Json, _case: Case) -> None:
    document.pop("schema", None)
    document.pop("partition-spec", None)


def _drop_plain_main(document: Json, case: Case) -> None:
    if "main" not in (case.base.get("refs") or {}) and document.get("refs"):
        document["refs"].pop("main", None)


def _drop_empty_summaries(document: Json, case: Case) -> None:
    known = {item["snapshot-id"]: item.get("summary") for item in case.base.get("snapshots", ())}
    for item in document.get("snapshots", ()):
        if not (known[item["snapshot-id"]] or {}).get("operation"):
            item.pop("summary", None)


def _drop_lonely_added_rows(document: Json, _case: Case) -> None:
    for item in document.get("snapshots", ()):
        if "first-row-id" not in item:
            item.pop("added-rows", None)


def _drop_empty_maps(document: Json, _case: Case) -> None:
    for item in (*document.get("encryption-keys", ()), *_blobs(document)):
        if not item.get("properties"):
            item.pop("properties", None)


def _blobs(document: Json) -> list[Json]:
    return [blob for item in document.get("statistics", ()) for blob in item["blob-metadata"]]


def _lift_counters(document: Json, _case: Case) -> None:
    given = [field["field-id"] for spec in document.get("partition-specs", ()) for field in spec["fields"]]
    if "last-partition-id" in document:
        document["last-partition-id"] = max(document["last-partition-id"], *given, 0)
    if "next-row-id" in document:
        ends = [item["first-row-id"] + item.get("added-rows", 0) for item in _with_rows(document)]
        document["next-row-id"] = max(document["next-row-id"], *ends, 0)


def _with_rows(document: Json) -> list[Json]:
    return [item for item in document.get("snapshots", ()) if item.get("first-row-id") is not None]


NORMALISATIONS = (
    *APPLYING_NORMALISATIONS,
    Normalisation(
        "fields from the future",
        "the reference drops what it does not know, Icetower keeps it",
        _drop_unknown,
    ),
    Normalisation(
        "the single schema and spec of version 1",
        "they repeat the current ones for readers of long ago; Icetower makes them anew at the next commit",
        _drop_single_schema_and_spec,
    ),
    Normalisation(
        "a main branch that was not written down",
        "the current snapshot is main's; the reference makes the branch only when there are no refs at all",
        _drop_plain_main,
    ),
    Normalisation(
        "a summary without its operation",
        "the reference guesses or drops it, Icetower keeps what is there",
        _drop_empty_summaries,
    ),
    Normalisation(
        "added rows without a first row id",
        "they say nothing alone; the reference drops them, Icetower keeps what is there",
        _drop_lonely_added_rows,
    ),
    Normalisation("empty properties", "an empty object may be left out", _drop_empty_maps),
    Normalisation(
        "counters lower than the ids in use",
        "the reference would give such an id a second time, and read old files as if they had what is new",
        _lift_counters,
    ),
)

REFUSALS = (
    RefusalDifference(
        "a default spec or order that is not there",
        "the reference notices when somebody writes to the table",
        "icetower",
        r"Cannot find (partition spec|sort order) with default-",
    ),
    RefusalDifference(
        "a log that is no list",
        "the reference passes over it",
        "icetower",
        r"(snapshot|metadata)-log: Input should be a valid array",
    ),
    RefusalDifference(
        "a broken single schema or spec of version 1",
        "the reference does not look at them where lists stand beside them",
        "icetower",
        r"(schema|partition-spec)[.:\[]",
    ),
    RefusalDifference(
        "a uuid that is none", "the reference takes any text", "icetower", r"(table|view)-uuid: not a UUID"
    ),
    RefusalDifference(
        "another format version",
        "Icetower knows versions 1 to 3 only; the reference begins with version 4 and takes 0 for 1",
        "icetower",
        r"Cannot read unsupported version [04]:",
    ),
    RefusalDifference(
        "kinds of refs in capitals",
        "the table format writes them in small letters; the reference takes both",
        "icetower",
        r"refs\..*\.type: ",
    ),
    RefusalDifference(
        "a view whose parts do not fit together",
        "the reference notices when somebody uses the view",
        "icetower",
        r"Cannot find (schema|current version) -?\d+",
    ),
    RefusalDifference(
        "a schema of a view without a proper id",
        "the reference takes it for 0",
        "icetower",
        r"schemas\[\d+\]\.schema-id: ",
    ),
    RefusalDifference(
        "numbers below zero",
        "ids of columns, sequence numbers, row ids and times are none; the reference does not look",
        "icetower",
        r"(next-row-id|(schemas|snapshots|versions)\[\d+\].*): Input should be greater than or equal to 0",
    ),
    RefusalDifference(
        "a level of a namespace that is null",
        "there is no such namespace",
        "icetower",
        r"versions\[\d+\]\.default-namespace\[\d+\]: ",
    ),
    RefusalDifference(
        "null in place of nothing",
        "it means nothing else; the reference looks whether a field is there, and then stumbles over the null",
        "reference",
        r"Cannot parse .*: null$|Invalid .*: null$",
    ),
    RefusalDifference(
        "an empty list of specs or orders",
        "in version 1 the single spec, and no order at all, then stand for it",
        "reference",
        r"(Partition specs|Sort orders) cannot be null or empty",
        lambda case: case.base.get("format-version") == 1,
    ),
    RefusalDifference(
        "contents that were checked when they came in",
        "a file is read as it is, so that a table with an old mistake in it can be loaded, listed and repaired",
        "reference",
        r"Multiple entries with same key|Cannot add field|Cannot find source column|Cannot create |Invalid source "
        r"type|Unsupported type|Cannot parse missing string: (sql|dialect)|Invalid partition|Cannot (bucket|truncate)"
        r"|Sort order ID 0 is reserved|Unsorted order ID must be 0",
    ),
    RefusalDifference(
        "representations of views that are not SQL",
        "they are kept for those who know them",
        "reference",
        r"Cannot serialize unsupported view representation",
    ),
)

READING = Agreement(NORMALISATIONS, REFUSALS)
