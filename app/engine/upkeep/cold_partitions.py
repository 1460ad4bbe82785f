"""Cold partitions: those that were not written lately, and the filter that names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.engine.health.facts import LATEST_PARTITIONS, FileFacts, PartitionFacts
from app.engine.model.data_types.moments import (
    UNITS_A_DAY,
    UNITS_A_SECOND,
    date_text,
    days_of_date,
    timestamp_text,
)
from app.engine.model.data_types.transforms import find_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.partition_spec import PartitionField
from app.engine.model.schema import Column
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.upkeep.sql_text import literal, quoted

_YEARS: Final = range(1, 9_999)
"""What Spark SQL can write as a date."""
_TIMES: Final = {"timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}
_NUMBERS: Final = frozenset({"int", "long"})


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """A partition, when it was written last, and how a filter leaves it out."""

    facts: PartitionFacts
    written_ms: int
    """No earlier than its newest file; where its snapshot has expired, the time of the next one that is known."""
    others: str | None
    """The rows of all other partitions, as Spark SQL; None if its values cannot be said in SQL."""


@dataclass(frozen=True, slots=True)
class ColdPart:
    """What is left of a table's files if partitions that were written lately are left out."""

    hot_partitions: int
    where: str
    files_to_save: int
    small_bytes: int
    data_files: int
    data_bytes: int
    delete_files: int


def latest_partitions(metadata: TableMetadata, files: FileFacts | None) -> tuple[WrittenPartition, ...]:
    """Return the partitions that were written last, newest first.

    Sequence numbers of their files say when. A compaction gives its files that of the snapshot which it has read, so
    partitions that it has rewritten count as written then. Format version 1 has none, and nothing is returned.
    """
    if files is None:
        return ()
    moments = _moments(metadata.snapshots)
    found = []
    for facts in files.latest_partitions:
        written_ms = next((at_ms for number, at_ms in moments if number >= facts.newest_sequence), None)
        if not facts.newest_sequence or written_ms is None:
            return ()
        found.append(WrittenPartition(facts, written_ms, _others(metadata, facts)))
    return tuple(found)


def cold_part(files: FileFacts, latest: Sequence[WrittenPartition], since_ms: int) -> ColdPart | None:
    """Return the part of a table that was not written since a moment.

    None if that is all, or nothing, or if SQL cannot say which it is.

    Args:
        files: all files of the table.
        latest: its partitions that were written last.
        since_ms: partitions that were written at this moment or later are hot.
    """
    hot = [partition for partition in latest if partition.written_ms >= since_ms]
    known = [partition.others for partition in hot if partition.others is not None]
    left = files.data_files - sum(partition.facts.data_files for partition in hot)
    if not hot or not left or len(known) < len(hot) or len(hot) == LATEST_PARTITIONS:
        return None
    return ColdPart(
        len(hot),
        # Partitions that differ only in what SQL does not say here share a filter.
        " AND ".join(sorted(set(known))),
        files.files_to_save - sum(partition.facts.files_to_save for partition in hot),
        files.small_bytes - sum(partition.facts.small_bytes for partition in hot),
        left,
        files.data_bytes - sum(partition.facts.data_bytes for partition in hot),
        files.delete_files - sum(partition.facts.delete_files for partition in hot),
    )


def _moments(snapshots: Iterable[Snapshot]) -> list[tuple[int, int]]:
    """Return sequence numbers with the time by which they were given out, both ascending."""
    return sorted((snapshot.sequence_number or 0, snapshot.timestamp_ms) for snapshot in snapshots)


def _others(metadata: TableMetadata, facts: PartitionFacts) -> str | None:
    spec = metadata.find_spec(facts.spec_id)
    if spec is None or len(spec.fields) != len(facts.partition):
        return None
    columns = metadata.current_schema.columns
    atoms = [
        atom
        for field, value in zip(spec.fields, facts.partition, strict=True)
        if (column := columns.get(field.source_id)) is not None
        for atom in _unlike(field, column, value)
    ]
    return f"({' OR '.join(atoms)})" if atoms else None


def _unlike(field: PartitionField, column: Column, value: Any) -> Iterator[str]:
    """Yield conditions of which one holds for each row that has another value.

    None are yielded if SQL cannot say it.
    """
    transform, kind = find_transform(field.transform), column.field.type
    if transform is None or not isinstance(kind, PrimitiveType):
        return
    has_text = transform.name == "identity" and kind.kind == "string"
    if value is not None and not isinstance(value, str if has_text else int):
        return  # Written as a value of another type.
    name = ".".join(quoted(part) for part in _path(column))
    if transform.name == "identity":
        text = None if value is None else _literal(kind, value)
        bounds = None if text is None else [f"{name} <> {text}"]
    elif transform.name in ("year", "month", "day", "hour"):
        bounds = _outside(transform.name, kind, name, value) if isinstance(value, int) else None
    else:
        return
    if value is None:
        yield f"{name} IS NOT NULL"
    elif bounds is not None:
        yield from bounds
        yield f"{name} IS NULL"


def _path(column: Column) -> list[str]:
    return [*(above.field.name for above in reversed(list(column.outer))), column.field.name]


def _outside(transform: str, kind: PrimitiveType, name: str, value: int) -> list[str] | None:
    """Return that a moment is before or after a year, month, day or hour, counted from 1970."""
    if kind.kind not in UNITS_A_DAY:
        return None
    if transform == "hour":
        start, end = divmod(value, 24), divmod(value + 1, 24)
    else:
        days = [_first_day(transform, number) for number in (value, value + 1)]
        if days[0] is None or days[1] is None:
            return None
        start, end = (days[0], 0), (days[1], 0)
    texts = [_moment(kind, *moment) for moment in (start, end)]
    return None if None in texts else [f"{name} < {texts[0]}", f"{name} >= {texts[1]}"]


def _first_day(transform: str, number: int) -> int | None:
    if transform == "day":
        return number
    year, month = divmod(number, 12) if transform == "month" else (number, 0)
    return days_of_date(f"{year + 1970:04}-{month + 1:02}-01") if year + 1970 in _YEARS else None


def _moment(kind: PrimitiveType, day: int, hour: int) -> str | None:
    units_a_day = UNITS_A_DAY[kind.kind]
    return _literal(kind, day * units_a_day + hour * units_a_day // 24)


def _literal(kind: PrimitiveType, value: Any) -> str | None:
    """Return a value of a column as Spark SQL; None for types that are left out."""
    if kind.kind in _NUMBERS:
        return str(int(value))
    if kind.kind == "string":
        return literal(str(value))
    if kind.kind == "boolean":
        return "true" if value else "false"
    if kind.kind == "date":
        text = date_text(value)
        return f"DATE {literal(text)}" if len(text) == len("2017-11-16") else None
    if kind.kind in _TIMES:
        text = timestamp_text(value, UNITS_A_SECOND[kind.kind], with_zone=kind.kind == "timestamptz")
        return f"{_TIMES[kind.kind]} {literal(text)}" if text[4] == "-" else None
    return None
