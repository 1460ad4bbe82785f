"""What is wanted of a rewrite of manifests, and what that means for one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.engine.appends.merging import MergeRules
from app.engine.model.data_types.values import order_key
from app.engine.model.files.manifests import Partition
from app.engine.model.files.partition_values import specs_with_fixed_values
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRequest

LEAST_TARGET_BYTES: Final = 16 << 10
_HEADER_BYTES: Final = 4_000
"""About what a manifest has before its first entry, without the table's schema."""
_HEADERS: Final = 8
"""A manifest has at least so many times the bytes of its header."""


@dataclass(frozen=True, slots=True)
class RewriteWish:
    """A rewrite of manifests, as a client asks for it."""

    spec_id: SpecId | None = None
    """Only manifests of this partition spec; None for all specs, each on its own."""
    cluster_by: str | None = None
    """A partition field, or a column that one is made of; None for all partition fields in their order."""
    target_bytes: int | None = None
    """The size of new manifests; None for the table's property."""
    rewrites_all: bool = False
    """Whether manifests are rewritten that are not worth it, too."""
    max_bytes: int | None = None
    """No more bytes of manifests are rewritten; the rest is left to later ones."""


@dataclass(frozen=True, slots=True)
class RewriteRules:
    """What a wish means for one table."""

    target_bytes: int
    header_bytes: int
    """About what a manifest has before its first entry."""
    rewrites_all: bool
    spec_ids: frozenset[SpecId]
    leading: dict[SpecId, tuple[int, ...]]
    """For each spec the places of the partition fields to cluster by, in their order."""
    max_bytes: int | None = None

    @classmethod
    def of(cls, wish: RewriteWish, metadata: TableMetadata) -> RewriteRules:
        """Return the rules of a wish.

        Raises:
            InvalidRequest: the table has no such spec, or no partition field or source column of this name.
        """
        specs = metadata.partition_specs
        if wish.spec_id is not None:
            specs = tuple(spec for spec in specs if spec.spec_id == wish.spec_id)
            if not specs:
                raise InvalidRequest(
                    f"Cannot rewrite manifests of spec-id {wish.spec_id}: the table has no such spec"
                )
        untouched = specs_with_fixed_values(metadata)
        leading = {
            spec.spec_id: _places(wish.cluster_by, spec, metadata)
            for spec in specs
            if spec.spec_id not in untouched
        }
        if wish.cluster_by is not None and not any(leading.values()):
            raise InvalidRequest(
                f"Cannot cluster-by {wish.cluster_by[:100]!r}: no partition field has this name, nor is one made "
                "of a column of this name. Manifests keep ranges of partition values only"
            )
        target_bytes = wish.target_bytes
        if target_bytes is None:
            target_bytes = MergeRules.of(metadata.properties).target_bytes
        header_bytes = _HEADER_BYTES + len(metadata.current_schema.to_json())
        target_bytes = max(LEAST_TARGET_BYTES, _HEADERS * header_bytes, target_bytes)
        return cls(target_bytes, header_bytes, wish.rewrites_all, frozenset(leading), leading, wish.max_bytes)

    def order_of(self, spec_id: SpecId, partition: Partition) -> ClusterKey:
        """Return where a partition stands in the order of a spec's entries."""
        keys = tuple(map(_sortable, partition))
        leading = tuple(keys[place] for place in self.leading[spec_id] if place < len(keys))
        return leading, keys


ClusterKey = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The values to cluster by, then the whole partition: both can be compared with others of the same spec."""


def _sortable(value: Any) -> tuple[Any, ...]:
    """Return a key in whose order null comes first, as in a manifest's summary of its values."""
    return () if value is None else (order_key(value),)


def _places(name: str | None, spec: PartitionSpec, metadata: TableMetadata) -> tuple[int, ...]:
    places = [place for place, field in enumerate(spec.fields) if not field.is_void]
    if name is None:
        return tuple(places)
    by_field = [place for place in places if spec.fields[place].name == name]
    if by_field:
        return tuple(by_field)
    sources = _column_ids(name, metadata)
    return tuple(place for place in places if spec.fields[place].source_id in sources)


def _column_ids(name: str, metadata: TableMetadata) -> Sequence[int]:
    field_id = metadata.current_schema.ids_by_name.get(name)
    return () if field_id is None else (field_id,)
