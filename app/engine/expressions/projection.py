"""Projection: from a filter on rows to a filter on the partition tuples of one spec.

An inclusive projection holds for every partition that may have a matching row. A strict one only holds for partitions
in which all rows match.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from app.engine.expressions import expressions as e
from app.engine.expressions.transform_projection import project_inclusive, project_transformed
from app.engine.model.data_types.transforms import Transform, find_transform
from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import PartitionField, PartitionSpec


def project_bound(
    bound: e.BoundExpression, spec: PartitionSpec, *, strict: bool = False
) -> e.BoundExpression:
    """Return the filter on a spec's partition tuples for a filter on a schema's columns."""
    sources = partition_sources(spec)
    projected = strictly_projected if strict else inclusively_projected
    return e.replace_predicates(
        e.rewrite_not(bound),
        lambda predicate: projected(predicate, sources.get(predicate.reference.field_id, ())),
    )


@dataclass(frozen=True, slots=True)
class PartitionSource:
    """A field of a spec, its position in a tuple, and the transform that makes it."""

    field: PartitionField
    position: int
    transform: Transform


def partition_sources(spec: PartitionSpec) -> dict[FieldId, tuple[PartitionSource, ...]]:
    """Return the fields of a spec by source column, without those of unknown transforms."""
    found: dict[FieldId, tuple[PartitionSource, ...]] = defaultdict(tuple)
    for position, field in enumerate(spec.fields):
        transform = find_transform(field.transform)
        if transform is not None and transform.name != "void":
            found[field.source_id] += (PartitionSource(field, position, transform),)
    return dict(found)


def inclusively_projected(
    predicate: e.BoundPredicate, sources: tuple[PartitionSource, ...]
) -> e.BoundExpression:
    """Return what holds for every partition that may have a matching row."""
    return e.conjunction(_projected(predicate, source) for source in sources)


def strictly_projected(
    predicate: e.BoundPredicate, sources: tuple[PartitionSource, ...]
) -> e.BoundExpression:
    """Return what is true only for partitions in which no row may match the opposite."""
    return e.rewrite_not(e.negation(inclusively_projected(predicate.negated, sources)))


def _projected(predicate: e.BoundPredicate, source: PartitionSource) -> e.BoundExpression:
    column, transform = predicate.reference, source.transform
    if not transform.applies_to(column.type):
        return e.ALWAYS_TRUE
    target = e.BoundReference(
        source.field.field_id,
        source.field.name,
        transform.result_type(column.type),
        (source.position,),
        column.is_nullable,
    )
    projected: e.BoundExpression | None = None
    if not isinstance(predicate.term, e.BoundTransform):
        projected = project_inclusive(predicate, transform, target)
    elif transform == predicate.term.transform:
        projected = project_transformed(predicate, transform, target)
    elif transform.name == "identity":
        term = e.BoundTransform(predicate.term.transform, target)
        projected = e.BoundPredicate(predicate.operation, term, predicate.values)
    return e.ALWAYS_TRUE if projected is None else projected
