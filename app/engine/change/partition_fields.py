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
        self._fields: dict[FieldId, list[PartitionField]] = {}
        for spec in specs:
            self.add(spec)

    def add(self, spec: PartitionSpec) -> None:
        """Take the fields of a spec in."""
        self.ids.update(ids_by_meaning(spec))
        for field in spec.fields:
            known = self._fields.setdefault(field.field_id, [])
            if not any(map(field.means_the_same, known)):
                known.append(field)

    def check(self, spec: PartitionSpec) -> None:
        """Check that the ids of a new spec mean no other fields.

        Raises:
            InvalidUpdate: names the two fields that have one id.
        """
        for field in spec.fields:
            known = self._fields.get(field.field_id)
            if known and not any(map(field.means_the_same, known)):
                raise InvalidUpdate(
                    f"Cannot add partition field {field.name}: its id {field.field_id} is that of {known[0].name} "
                    f"({known[0].transform} of column {known[0].source_id}); leave ids out to have them given"
                )
