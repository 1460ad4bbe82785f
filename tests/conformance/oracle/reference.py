"""The reference: Iceberg's own parsers, builders and checks, driven the way its REST server drives them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.conformance.oracle.outcomes import Accepted, Json, Outcome, Refused

_CONFLICTS = frozenset({"CommitFailedException", "RetryableValidationException"})
_STALE = re.compile("Cannot add (a )?snapshot.* (older than|behind) ")
"""Another commit came first. Version 1.10 answers 400, later ones tell this kind apart and answer 409."""
DEFAULT_FORMAT_VERSION = 2


def _refused(error: Py4JJavaError, step: str) -> Refused:
    exception = error.java_exception
    kind = exception.getClass().getSimpleName()
    message = exception.getMessage() or kind
    if _STALE.match(message):
        return Refused(f"Validation failed, please retry: {message}", step, is_conflict=True)
    return Refused(message, step, is_conflict=kind in _CONFLICTS)


class Reference:
    """Iceberg, answering in outcomes."""

    def __init__(self, iceberg: Any) -> None:
        self._iceberg = iceberg

    def read_table(self, document: Json) -> Outcome:
        """Parse table metadata and write it again."""
        parser = self._iceberg.TableMetadataParser
        try:
            return Accepted(json.loads(parser.toJson(parser.fromJson(json.dumps(document)))))
        except Py4JJavaError as error:
            return _refused(error, "base")

    def commit(self, base: Json, location: str, updates: Sequence[Json]) -> Outcome:
        """Apply updates to a table whose metadata file is at the location."""
        try:
            parsed = self._iceberg.TableMetadataParser.fromJson(location, json.dumps(base))
        except Py4JJavaError as error:
            return _refused(error, "base")
        return self._build(lambda: self._iceberg.TableMetadata.buildFrom(parsed), updates)

    def create(self, updates: Sequence[Json]) -> Outcome:
        """Make a table of updates alone; the first `upgrade-format-version` chooses its version."""
        versions = [
            item.get("format-version") for item in updates if item["action"] == "upgrade-format-version"
        ]
        version = versions[0] if versions else DEFAULT_FORMAT_VERSION
        return self._build(lambda: self._iceberg.TableMetadata.buildFromEmpty(version), updates)

    def _build(self, start: Callable[[], Any], updates: Sequence[Json]) -> Outcome:
        step = "parse"
        try:
            parsed = []
            for position, update in enumerate(updates):
                step = f"parse {position}"
                parsed.append(self._iceberg.MetadataUpdateParser.fromJson(json.dumps(update)))
            builder = start()
            for position, item in enumerate(parsed):
                step = f"apply {position}"
                item.applyTo(builder)
            step = "build"
            metadata = builder.build()
            document = json.loads(self._iceberg.TableMetadataParser.toJson(metadata))
            return Accepted(document, has_changes=not metadata.changes().isEmpty())
        except Py4JJavaError as error:
            return _refused(error, step)

    def new_table(
        self,
        schema: Json,
        spec: Json | None,
        order: Json | None,
        location: str,
        properties: Mapping[str, str],
    ) -> Outcome:
        """Make a table as one create request does."""
        try:
            columns, partitions, sorting = self._layout(schema, spec, order)
            metadata = self._iceberg.TableMetadata.newTableMetadata(
                columns, partitions, sorting, location, dict(properties)
            )
            return Accepted(json.loads(self._iceberg.TableMetadataParser.toJson(metadata)))
        except Py4JJavaError as error:
            return _refused(error, "build")

    def replacement(
        self, base: Json, schema: Json, spec: Json | None, order: Json | None, properties: Mapping[str, str]
    ) -> list[Json] | None:
        """Return the updates with which the reference's client replaces a table; None if it refuses to."""
        try:
            columns, partitions, sorting = self._layout(schema, spec, order)
            parsed = self._iceberg.TableMetadataParser.fromJson(json.dumps(base))
            replaced = parsed.buildReplacement(
                columns, partitions, sorting, base["location"], dict(properties)
            )
            return [
                json.loads(self._iceberg.MetadataUpdateParser.toJson(item)) for item in replaced.changes()
            ]
        except Py4JJavaError:
            return None

    def _layout(self, schema: Json, spec: Json | None, order: Json | None) -> tuple[Any, Any, Any]:
        iceberg = self._iceberg
        columns = iceberg.SchemaParser.fromJson(json.dumps(schema))
        partitions = (
            iceberg.PartitionSpec.unpartitioned()
            if spec is None
            else iceberg.PartitionSpecParser.fromJson(columns, json.dumps({"spec-id": 0, **spec}))
        )
        sorting = (
            iceberg.SortOrder.unsorted()
            if order is None
            else iceberg.SortOrderParser.fromJson(columns, json.dumps(order))
        )
        return columns, partitions, sorting

    def check_requirements(self, base: Json, requirements: Sequence[Json]) -> Outcome:
        """Check requirements against a table; what they find is the table itself."""
        parsed = self._iceberg.TableMetadataParser.fromJson(json.dumps(base))
        return self._check(parsed, base, requirements)

    def check_view_requirements(self, base: Json, requirements: Sequence[Json]) -> Outcome:
        """Check requirements against a view."""
        parsed = self._iceberg.view.ViewMetadataParser.fromJson(json.dumps(base))
        return self._check(parsed, base, requirements)

    def _check(self, parsed: Any, base: Json, requirements: Sequence[Json]) -> Outcome:
        step = "parse"
        try:
            items = []
            for position, requirement in enumerate(requirements):
                step = f"parse {position}"
                items.append(self._iceberg.UpdateRequirementParser.fromJson(json.dumps(requirement)))
            for position, item in enumerate(items):
                step = f"check {position}"
                item.validate(parsed)
        except Py4JJavaError as error:
            return _refused(error, step)
        return Accepted(base)

    def requirements_for(self, base: Json | None, updates: Sequence[Json]) -> list[Json] | None:
        """Derive what a writer of these updates must demand; a missing base is a table to create.

        None: the updates cannot be parsed.
        """
        iceberg = self._iceberg
        try:
            parsed = [iceberg.MetadataUpdateParser.fromJson(json.dumps(update)) for update in updates]
        except Py4JJavaError:
            return None
        if base is None:
            derived = iceberg.UpdateRequirements.forCreateTable(parsed)
        else:
            metadata = iceberg.TableMetadataParser.fromJson(json.dumps(base))
            derived = iceberg.UpdateRequirements.forUpdateTable(metadata, parsed)
        return [json.loads(iceberg.UpdateRequirementParser.toJson(item)) for item in derived]

    def read_view(self, document: Json) -> Outcome:
        """Parse view metadata and write it again."""
        parser = self._iceberg.view.ViewMetadataParser
        try:
            return Accepted(json.loads(parser.toJson(parser.fromJson(json.dumps(document)))))
        except Py4JJavaError as error:
            return _refused(error, "base")

    def commit_view(self, base: Json, updates: Sequence[Json]) -> Outcome:
        """Apply updates to a view."""
        step = "base"
        try:
            parsed = self._iceberg.view.ViewMetadataParser.fromJson(json.dumps(base))
            items = []
            for position, update in enumerate(updates):
                step = f"parse {position}"
                items.append(self._iceberg.MetadataUpdateParser.fromJson(json.dumps(update)))
            builder = self._iceberg.view.ViewMetadata.buildFrom(parsed)
            for position, item in enumerate(items):
                step = f"apply {position}"
                item.applyTo(builder)
            step = "build"
            metadata = builder.build()
            if metadata.changes().isEmpty():
                # Its server then leaves the view as it is, although `build` may have trimmed the history.
                return Accepted(dict(base), has_changes=False)
            return Accepted(json.loads(self._iceberg.view.ViewMetadataParser.toJson(metadata)))
        except Py4JJavaError as error:
            return _refused(error, step)

    def new_view(
        self, schema: Json, version: Json, location: str, properties: Mapping[str, str], uuid: str
    ) -> Outcome:
        """Make a view as one create request does."""
        adding = {"action": "add-view-version", "view-version": version}
        try:
            columns = self._iceberg.SchemaParser.fromJson(json.dumps(schema))
            definition = self._iceberg.MetadataUpdateParser.fromJson(json.dumps(adding)).viewVersion()
            builder = self._iceberg.view.ViewMetadata.builder()
            builder.assignUUID(uuid).setProperties(dict(properties)).setLocation(location)
            metadata = builder.setCurrentVersion(definition, columns).build()
            return Accepted(json.loads(self._iceberg.view.ViewMetadataParser.toJson(metadata)))
        except Py4JJavaError as error:
            return _refused(error, "build")
