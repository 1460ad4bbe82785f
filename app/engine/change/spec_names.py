"""Names of partition fields: which of them a schema has for other columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema


class SpecNames:
    """The names of all partition fields of a draft, with their source columns.

    A request may set schemas as current thousands of times, beside thousands of specs.
    """

    def __init__(self, specs: Iterable[PartitionSpec]) -> None:
        self._sources: dict[str, Counter[FieldId]] = {}
        # The schemas that have been looked at since a spec came or went last.
        self._free: dict[int, Schema] = {}
        for spec in specs:
            self.add(spec)

    def add(self, spec: PartitionSpec) -> None:
        """Take the names of a spec in."""
        self._free.clear()
        for field in spec.fields:
            self._sources.setdefault(field.name, Counter())[field.source_id] += 1

    def remove(self, spec: PartitionSpec) -> None:
        """Let the names of a spec go."""
        self._free.clear()
        for field in spec.fields:
            sources = self._sources[field.name]
            sources[field.source_id] -= 1
            if not sources[field.source_id]:
                del sources[field.source_id]
            if not sources:
                del self._sources[field.name]

    def are_free_in(self, schema: Schema) -> bool:
        """Return whether no column has the name of a partition field, other than its source."""
        if self._free.get(schema.schema_id) is schema:
            return True
        names = schema.ids_by_name
        is_free = all(
            self._sources[name].keys() == {names[name]} for name in self._sources.keys() & names.keys()
        )
        if is_free:
            self._free[schema.schema_id] = schema
        return is_free
