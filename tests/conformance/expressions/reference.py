"""The reference: Iceberg's own binder, projections and evaluators, asked in JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from app.engine.model.files.manifests import DataFile, ManifestFile

Json = Any


class Refused(Exception):
    """What the reference said no to, in its words."""


class Reference:
    """Iceberg's expressions."""

    def __init__(self, iceberg: Any) -> None:
        self.iceberg = iceberg
        convert = self.iceberg.avro.AvroSchemaUtil.convert
        self._manifest_layout = convert(self.iceberg.ManifestFile.schema(), "manifest_file")
        self._summary_layout = convert(self.iceberg.ManifestFile.PARTITION_SUMMARY_TYPE, "r508")

    def table(self, schema: Json, spec: Json) -> ReferenceTable:
        """Return the questions that one schema and spec can be asked."""
        columns = self.iceberg.SchemaParser.fromJson(json.dumps(schema))
        partitioning = self.iceberg.PartitionSpecParser.fromJson(columns, json.dumps(spec))
        return ReferenceTable(self, columns, partitioning)

    def expression(self, document: Json, schema: Any = None) -> Any:
        """Parse an expression; with a schema, its literals are single values of the columns' types."""
        parse = self.iceberg.expressions.ExpressionParser.fromJson
        text = json.dumps(document)
        return parse(text) if schema is None else parse(text, schema)

    def rewritten(self, document: Json) -> Json:
        """Parse an expression and write it again."""
        return self.to_json(_asked(lambda: self.expression(document)))

    def to_json(self, expression: Any) -> Json:
        """Write an expression."""
        return json.loads(self.iceberg.expressions.ExpressionParser.toJson(expression))

    def node(self, document: Json) -> Any:
        """Return a JSON value as the reference's parsers take it."""
        return self.iceberg.util.JsonUtil.mapper().readTree(json.dumps(document))

    def bytes(self, content: bytes | None) -> Any:
        """Return bytes as the reference takes them."""
        if content is None:
            return None
        binary = self.iceberg.types.Types.BinaryType.get()
        return self.iceberg.SingleValueParser.fromJson(binary, self.node(content.hex().upper()))

    def manifest(self, manifest: ManifestFile) -> Any:
        """Return a manifest with the same summaries."""
        summaries = []
        for summary in manifest.partitions or ():
            item = self.iceberg.GenericPartitionFieldSummary(self._summary_layout)
            item.put(0, summary.contains_null)
            item.put(1, summary.contains_nan)
            item.put(2, self.bytes(summary.lower_bound))
            item.put(3, self.bytes(summary.upper_bound))
            summaries.append(item)
        named = self.iceberg.GenericManifestFile(self._manifest_layout)
        named.put(2, manifest.partition_spec_id)
        named.put(13, summaries)
        return named


class ReferenceTable:
    """Iceberg's answers about one schema and one spec."""

    def __init__(self, reference: Reference, schema: Any, spec: Any) -> None:
        self._reference = reference
        self._iceberg = reference.iceberg
        self._expressions = reference.iceberg.expressions
        self._schema = schema
        self._spec = spec
        kinds = {str(field.type()) for field in schema.columns()}
        self._reads_binary = any(
            kind.startswith(("binary", "fixed", "struct")) and ("binary" in kind or "fixed" in kind)
            for kind in kinds
        )

    def bound(self, document: Json, *, case_sensitive: bool = True) -> Json:
        """Bind an expression, and write what became of it."""
        expression = self._reference.expression(document)
        bind = self._expressions.Binder.bind
        return self._reference.to_json(
            _asked(lambda: bind(self._schema.asStruct(), expression, case_sensitive))
        )

    def _expression(self, document: Json) -> Any:
        # Only with a schema does it read binary literals, and only without one those of nanosecond columns.
        return self._reference.expression(document, self._schema if self._reads_binary else None)

    def projected(self, document: Json, *, strict: bool = False) -> Json:
        """Project an expression to the spec's fields, and write what became of it."""
        projections = self._expressions.Projections
        projection = (projections.strict if strict else projections.inclusive)(self._spec)
        expression = self._expression(document)
        return self._reference.to_json(_asked(lambda: projection.project(expression)))

    def row(self, document: Json) -> Any:
        """Return a row, given as a struct in single-value JSON."""
        text = json.dumps(document).replace('"NaN"', "0.0").replace('"Infinity"', "1e999")
        node = self._iceberg.util.JsonUtil.mapper().readTree(text.replace('"-Infinity"', "-1e999"))
        row = self._iceberg.SingleValueParser.fromJson(self._schema.asStruct(), node)
        self._put_nan(row, document, self._schema.asStruct())
        return row

    def _put_nan(self, row: Any, document: Json, kind: Any) -> None:
        """Its parser has no word for NaN, so put it in the row afterwards."""
        for position, field in enumerate(kind.fields()):
            value = document.get(str(field.fieldId()))
            if isinstance(value, dict):
                self._put_nan(row.get(position), value, field.type())
            elif value == "NaN":
                row.set(position, math.nan)

    def row_matches(self, document: Json, row: Json) -> bool:
        """Evaluate an expression on a row."""
        evaluator = self._expressions.Evaluator
        struct, values = self._schema.asStruct(), self.row(row)
        return bool(_asked(lambda: evaluator(struct, self._expression(document)).eval(values)))

    def partition(self, row: Json) -> Any:
        """Return the partition of a row."""
        key = self._iceberg.PartitionKey(self._spec, self._schema)
        key.partition(self.row(row))
        return key

    def partition_json(self, row: Json) -> Json:
        """Return the partition of a row as a struct in single-value JSON."""
        text = self._iceberg.SingleValueParser.toJson(self._spec.partitionType(), self.partition(row))
        return json.loads(text)

    def partition_matches(self, document: Json, row: Json, *, strict: bool) -> bool:
        """Evaluate the projection of an expression on the partition of a row."""
        projections = self._expressions.Projections
        projection = (projections.strict if strict else projections.inclusive)(self._spec)
        evaluator, values = self._expressions.Evaluator, self.partition(row)

        def matched() -> Any:
            projected = projection.project(self._expression(document))
            return evaluator(self._spec.partitionType(), projected).eval(values)

        return bool(_asked(matched))

    def residual(self, document: Json, row: Json) -> Json:
        """Return what is left of an expression for the partition of a row."""
        evaluator, values = self._expressions.ResidualEvaluator, self.partition(row)
        expression = self._expression(document)
        left = _asked(lambda: evaluator.of(self._spec, expression, True).residualFor(values))
        return self._reference.to_json(left)

    def manifest_may_match(self, document: Json, manifest: ManifestFile) -> bool:
        """Ask a manifest's summaries."""
        evaluator, named = self._expressions.ManifestEvaluator, self._reference.manifest(manifest)
        expression = self._expression(document)
        return bool(_asked(lambda: evaluator.forRowFilter(expression, self._spec, True).eval(named)))

    def metrics_match(self, document: Json, file: DataFile, *, strict: bool) -> bool:
        """Ask a file's metrics."""
        kind = (
            self._expressions.StrictMetricsEvaluator
            if strict
            else self._expressions.InclusiveMetricsEvaluator
        )
        evaluator = kind(self._schema, self._expression(document))
        return bool(evaluator.eval(self._file(file)))

    def _file(self, file: DataFile) -> Any:
        document: dict[str, Json] = {
            "spec-id": 0,
            "content": "DATA",
            "file-path": file.file_path,
            "file-format": "PARQUET",
            "partition": {},
            "file-size-in-bytes": file.file_size_in_bytes,
            "record-count": file.record_count,
            "value-counts": _pairs(file.value_counts),
            "null-value-counts": _pairs(file.null_value_counts),
            "nan-value-counts": _pairs(file.nan_value_counts),
            "lower-bounds": _pairs(file.lower_bounds),
            "upper-bounds": _pairs(file.upper_bounds),
        }
        document = {name: value for name, value in document.items() if value is not None}
        unpartitioned = self._iceberg.PartitionSpec.unpartitioned()
        return self._iceberg.ContentFileParser.fromJson(self._reference.node(document), unpartitioned)


def _pairs(known: Mapping[int, Any] | None) -> Json:
    if known is None:
        return None
    values = [value.hex().upper() if isinstance(value, bytes) else value for value in known.values()]
    return {"keys": list(known), "values": values}


def _asked(question: Any) -> Any:
    try:
        return question()
    except Py4JJavaError as error:
        exception = error.java_exception
        raise Refused(f"{exception.getClass().getSimpleName()}: {exception.getMessage()}") from error
