"""Partition values of appended files: given or derived, and checked against bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from app.engine.expressions.transform_values import transform_function
from app.engine.model.data_types.json_values import from_json_value, to_json_value
from app.engine.model.data_types.moments import days_of_date, months_since_1970
from app.engine.model.data_types.transforms import Transform, find_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import order_key, to_bytes
from app.engine.model.files.manifests import Partition
from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import PartitionField, PartitionSpec
from app.engine.model.schema import Schema
from app.errors import InvalidDataFile

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark write into a path where a column has no value."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?|[0-9]*\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Python's own numbers may also have underscores, spaces and digits of other scripts."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What is known of the values of a column in one file; None where something is not known."""

    value_count: int | None = None
    null_count: int | None = None
    lower: Any = None
    upper: Any = None
    constant: Any = None
    """What rows have for a column that is not in the file."""
    is_absent: bool = False
    shortest_cut: int = 16
    """To which length the writer may have cut bounds of text and binary; Parquet's writers keep more."""

    @property
    def is_all_null(self) -> bool:
        if self.is_absent:
            return self.constant is None
        return self.null_count is not None and self.null_count == self.value_count


UNKNOWN: Final = SourceFacts()
FactsOf = Callable[[FieldId], SourceFacts]


class PartitionRules:
    """How the partition values of one spec are read, derived and checked."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self._fields = [_Field(field, schema) for field in spec.fields]

    def identity_sources(self, partition: Partition) -> set[FieldId]:
        """Return the columns that readers take from the partition where a file does not have them."""
        return {
            field.source_id
            for field, value in zip(self._fields, partition, strict=True)
            if field.transform.name == "identity" and value is not None
        }

    def listed(self, path: str, values: Sequence[Any]) -> Partition:
        """Return the tuple of values in single-value JSON, in the order of the spec's fields.

        Raises:
            InvalidDataFile: their number is another one, or one is not of its field's type.
        """
        if len(values) != len(self._fields):
            raise InvalidDataFile(
                path,
                f"it has {len(values)} partition values, and its partition spec {len(self._fields)} fields",
            )
        return tuple(field.read(path, value) for field, value in zip(self._fields, values, strict=True))

    def named(self, path: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that are given by the names of fields, as values.

        Raises:
            InvalidDataFile: the spec has no field of a name, or a value is not of its type.
        """
        by_name = {field.name: field for field in self._fields}
        for name in values:
            if name not in by_name:
                raise InvalidDataFile(
                    path, f"its partition names {name[:100]!r}, which the partition spec does not have"
                )
        return {name: by_name[name].read(path, value) for name, value in values.items()}

    def in_path(self, path: str) -> dict[str, Any]:
        """Return the values in the folders of a path, as `day=2024-05-01`, for the spec's fields.

        Raises:
            InvalidDataFile: one is not of its field's type.
        """
        by_name = {field.name: field for field in self._fields}
        found = {}
        for folder in path.split("/")[:-1]:
            name, separator, text = folder.partition("=")
            field = by_name.get(unquote(name)) if separator else None
            if field is not None:
                found[field.name] = None if text == NO_VALUE else field.read_text(path, text)
        return found

    def lost_in_path(self, path: str, absent: Mapping[str, FieldId], given: Collection[str]) -> str | None:
        """Return a column whose value in a folder readers would not find; None if all is found.

        Of a column that the file does not have they take it from an identity partition only.

        Args:
            path: of the file.
            absent: the columns that it does not have, by their names.
            given: the fields whose values are given in another way.
        """
        fields = [field for field in self._fields if field.transform.name == "identity"]
        found = {(field.name, field.source_id) for field in fields}
        named = {field.source_id for field in fields if field.name in given}
        for folder in path.split("/")[:-1]:
            name, separator, text = folder.partition("=")
            name = unquote(name)
            if not separator or text == NO_VALUE or name not in absent or absent[name] in named:
                continue
            if (name, absent[name]) not in found:
                return name
        return None

    def completed(self, path: str, given: Mapping[str, Any], facts_of: FactsOf) -> Partition:
        """Return the tuple of a file: values that are not given are derived from bounds.

        Raises:
            InvalidDataFile: a value cannot be derived.
        """
        return tuple(
            given[field.name] if field.name in given else field.derived(path, facts_of(field.source_id))
            for field in self._fields
        )

    def check(self, path: str, partition: Partition, facts_of: FactsOf) -> None:
        """Check that a file can have these partition values.

        Raises:
            InvalidDataFile: its bounds or counts say that it has other values.
        """
        for field, value in zip(self._fields, partition, strict=True):
            field.check(path, value, facts_of(field.source_id))


class _Field:
    """One field of a spec, with the type of its values."""

    def __init__(self, field: PartitionField, schema: Schema) -> None:
        self.name, self.source_id = field.name, field.source_id
        transform, column = find_transform(field.transform), schema.columns.get(field.source_id)
        self.transform = transform or Transform("unknown")
        source = column.field.type if column is not None else None
        self._source = source if isinstance(source, PrimitiveType) else None
        self._text = field.transform

    def _known(self, path: str) -> tuple[PrimitiveType, PrimitiveType]:
        """Return the type of the source column and that of the field's values."""
        if self._source is None or not self.transform.applies_to(self._source):
            raise InvalidDataFile(
                path, f"this server cannot make values for partition field {self.name} ({self._text})"
            )
        result = self.transform.result_type(self._source)
        assert isinstance(result, PrimitiveType)
        if result.kind == "fixed":
            # Java's up to 1.10 read and write the length before them, which Avro and all others do not.
            raise InvalidDataFile(
                path,
                f"its partition field {self.name} is of type {result}, of which no manifest can be read by all engines",
            )
        return self._source, result

    def read(self, path: str, value: Any) -> Any:
        if self.transform.name == "void":
            if value is not None:
                raise InvalidDataFile(path, f"its value for partition field {self.name} must be null (void)")
            return None
        _, result = self._known(path)
        try:
            return from_json_value(result, value)
        except ValueError as error:
            raise InvalidDataFile(path, f"its value for partition field {self.name}: {error}") from error

    def read_text(self, path: str, text: str) -> Any:
        """Return the value that the name of a folder means, which may have percent signs."""
        if self.transform.name == "void":
            return None
        _, result = self._known(path)
        try:
            # Not as `unquote` does by itself, which puts one character in the place of all bytes that are no UTF-8.
            decoded = unquote(text, errors="strict")
            return from_json_value(result, _json_of_text(self.transform, result, decoded))
        except ValueError as error:
            raise InvalidDataFile(path, f"its folder for partition field {self.name}: {error}") from error

    def derived(self, path: str, facts: SourceFacts) -> Any:
        if self.transform.name == "void":
            return None
        value, (_, result) = self._derived(path, facts), self._known(path)
        if value is not None:
            try:
                # The hours of some times have more than 32 bits, and what a decimal is cut to may have one digit more.
                to_bytes(result, value)
            except ValueError as error:
                raise InvalidDataFile(path, f"its value for partition field {self.name}: {error}") from error
        return value

    def _derived(self, path: str, facts: SourceFacts) -> Any:
        source, _ = self._known(path)
        transformed = transform_function(self.transform, source)
        if facts.is_absent:
            return None if facts.constant is None else transformed(facts.constant)
        if facts.is_all_null:
            return None
        what = f"its value for partition field {self.name} cannot be derived"
        if facts.lower is None or facts.upper is None or facts.null_count is None:
            raise InvalidDataFile(path, f"{what}, as the file has no bounds for the column: give it")
        if facts.null_count:
            raise InvalidDataFile(path, f"{what}, as some of the column's values are null and some are not")
        if isinstance(facts.lower, float):
            # Footers do not count NaN, and bounds leave it out.
            raise InvalidDataFile(path, f"{what} from bounds, which say nothing about NaN: give it")
        is_single = facts.lower == facts.upper
        if not is_single and self.transform.name in {"identity", "bucket"}:
            raise InvalidDataFile(path, f"{what}, as the column has several values")
        lowest, highest = transformed(facts.lower), transformed(facts.upper)
        if lowest != highest:
            raise InvalidDataFile(path, f"{what}, as the file has rows of several partitions")
        return lowest

    def check(self, path: str, value: Any, facts: SourceFacts) -> None:
        if self.transform.name == "void":
            return
        source, result = self._known(path)
        if value is None:
            self._check_null(path, facts)
            return
        if self.transform.name == "bucket" and not 0 <= value < (self.transform.parameter or 1):
            raise self._contradiction(path, result, value, "there is no such bucket")
        transformed = transform_function(self.transform, source)
        if facts.is_absent:
            is_partition_only = self.transform.name == "identity" and facts.constant is None
            # -0.0 is another partition than 0.0.
            if not is_partition_only and (
                facts.constant is None or order_key(transformed(facts.constant)) != order_key(value)
            ):
                raise self._contradiction(path, result, value, "the file does not have the column")
            return
        if facts.is_all_null or facts.null_count:
            raise self._contradiction(path, result, value, "the column has nulls")
        # Of numbers at the edge, what they are cut to is on the other side.
        is_cut = self.transform.name != "truncate" or transformed(value) == value
        if facts.lower is None or facts.upper is None:  # NaN has no bounds
            if not is_cut:
                raise self._contradiction(path, result, value, f"nothing is cut to it by {self._text}")
            return
        is_single = facts.lower == facts.upper
        if self.transform.name == "bucket" and not is_single:
            return
        lowest, highest = transformed(facts.lower), transformed(facts.upper)
        # Of zero, bounds do not say the sign: Parquet's writers make the lower one -0.0 and the upper one 0.0.
        if lowest == highest == value or (is_cut and _may_be_cut(value, lowest, highest, facts.shortest_cut)):
            return
        raise self._contradiction(path, result, value, "its bounds say that it has other values")

    def _check_null(self, path: str, facts: SourceFacts) -> None:
        if facts.is_absent and facts.constant is None:
            return
        has_values = facts.lower is not None or (
            facts.null_count is not None and facts.value_count is not None and facts.null_count < facts.value_count
        )  # fmt: skip
        if has_values or facts.is_absent:
            raise InvalidDataFile(
                path, f"its value for partition field {self.name} is null, and the column has other values"
            )

    def _contradiction(self, path: str, result: PrimitiveType, value: Any, why: str) -> InvalidDataFile:
        shown = str(to_json_value(result, value))[:100]
        return InvalidDataFile(path, f"its value {shown} for partition field {self.name} is wrong: {why}")


def _may_be_cut(value: Any, lowest: Any, highest: Any, shortest_cut: int) -> bool:
    """Say whether bounds may be those of one value that was cut: the lower one begins it."""
    if not isinstance(value, str | bytes) or type(value) is not type(lowest):
        return False
    return (
        shortest_cut <= len(lowest) < len(value)
        and value[: len(lowest)] == lowest
        and len(highest) <= len(lowest)
        and bool(value < highest)
    )


def _json_of_text(transform: Transform, result: PrimitiveType, text: str) -> Any:
    """Return what the name of a folder is in single-value JSON."""
    match transform.name:
        case "year":
            return _whole(text) - 1970
        case "month":
            return months_since_1970(days_of_date(f"{text}-01"))
        case "hour":
            day, _, hour = text.rpartition("-")
            if not 0 <= _whole(hour) <= 23:
                raise ValueError(f"not an hour: {text[:50]!r}")
            return days_of_date(day) * 24 + int(hour)
    match result.kind:
        case "int" | "long":
            return _whole(text)
        case "float" | "double":
            if _NUMBER.fullmatch(text) is None and text not in {"NaN", "Infinity", "-Infinity"}:
                raise ValueError(f"not a number: {text[:50]!r}")
            return float(text)
        case "boolean":
            return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _whole(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"not a whole number: {text[:50]!r}")
    return int(text)
