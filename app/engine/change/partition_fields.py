"""The partition fields of all specs of a draft: what each field id means."""

from __future__ import annotations

from collections.abc import Iterable

from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import FieldMeaning, PartitionField, PartitionSpec, ids_by_meaning
from app.errors import InvalidUpdate


class PartitionFields:
    """The fields of a table's partition specs, by what they mean and by their ids.

    Readers refuse a table in which one id means two fields. Version 1 has such tables, for it does not track ids.
    """

    def __init__(self, specs: Iterable[PartitionSpec]) -> None:
        self.ids: dict[FieldMeaning, FieldId] = {}
        # Of each source one that is void is kept only until another one is there: it leaves open what its id means.
        self._fields: dict[FieldId, dict[FieldId, dict[FieldMeaning, PartitionField]]] = {}
        for spec in specs:
            self.add(spec)

    def add(self, spec: PartitionSpec) -> None:
        """Take the fields of a spec in."""
        self.ids.update(ids_by_meaning(spec))
        for field in spec.fields:
            same_source = self._fields.setdefault(field.field_id, {}).setdefault(field.source_id, {})
            is_open = all(known.is_void for known in same_source.values())
            if is_open:
                same_source.clear()
            if is_open or not field.is_void:
                same_source.setdefault(field.meaning, field)

    def check(self, spec: PartitionSpec) -> None:
        """Check that the ids of a new spec mean no other fields.

        Raises:
            InvalidUpdate: names the two fields that have one id.
        """
        for field in spec.fields:
            by_source = self._fields.get(field.field_id, {})
            same_source = by_source.get(field.source_id, {})
            if not by_source or field.meaning in same_source:
                continue
            if same_source and (field.is_void or all(known.is_void for known in same_source.values())):
                continue
            known = next(known for fields in by_source.values() for known in fields.values())
            raise InvalidUpdate(
                f"Cannot add partition field {field.name}: its id {field.field_id} is that of {known.name} "
                f"({known.transform} of column {known.source_id}); leave ids out to have them given"
            )
