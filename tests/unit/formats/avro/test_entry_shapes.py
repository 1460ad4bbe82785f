"""What is learnt from records has bounds in time and memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from app.formats.avro import entry_shapes
from app.formats.avro.entry_shapes import EntryShapes
from app.formats.avro.metric_columns import bound_columns
from app.formats.avro.metric_maps import BoundMap
from app.formats.avro.types import Length, Token, write_long


def lesson(*sizes: int, mark: bytes = b"") -> list[Token]:
    return [mark, *(Length(size) for size in sizes)]


def record(*sizes: int, mark: bytes = b"") -> bytes:
    return mark + b"".join(write_long(size) + b"x" * size for size in sizes)


def alternatives(shapes: EntryShapes) -> int:
    return sum(shape.alternatives for shape in shapes._shapes)


def test_sizes_that_differ_are_learnt() -> None:
    shapes = EntryShapes()
    shapes.learn(lesson(3, 5))
    shapes.learn(lesson(3, 9))

    assert shapes.match(record(3, 20), 0)
    assert shapes.match(record(4, 20), 0) is None


def test_a_record_of_very_many_texts_of_all_sizes_is_not_learnt() -> None:
    """Each text alone stays below its limit; together they took seconds to compile, and 100 MB."""
    shapes = EntryShapes()
    shapes.learn(lesson(*[20] * 800))
    shapes.learn(lesson(*[100] * 800))

    assert alternatives(shapes) <= 2_000
    assert shapes.match(record(*[20] * 800), 0)
    assert shapes.match(record(*[60] * 800), 0) is None


def test_the_shapes_of_one_schema_are_bounded_together() -> None:
    shapes = EntryShapes()
    for number in range(8):
        for size in (20, 60):
            shapes.learn(lesson(*[size] * 100, mark=b"%d" % number))

    assert 10_000 < alternatives(shapes) <= entry_shapes._MAX_ALTERNATIVES
    assert shapes.match(record(*[33] * 100, mark=b"7"), 0)


def test_the_shapes_of_all_schemas_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_shapes, "_LEARNT", entry_shapes._Learnt(1_000))
    schemas = [EntryShapes() for _ in range(20)]
    for shapes in schemas:
        shapes.learn(lesson(*[20] * 100))

    assert sum(map(alternatives, schemas)) <= 1_000
    assert schemas[-1].match(record(*[20] * 100), 0)
    assert schemas[0].match(record(*[20] * 100), 0) is None


def most_memory_of(work: Callable[[], object]) -> int:
    """Return how many bytes some work has held at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_long_text_beside_a_short_one_is_not_learnt() -> None:
    """A list of all sizes between the two took gigabytes for a text of a hundred megabytes."""
    shapes = EntryShapes()
    shapes.learn(lesson(5))

    assert most_memory_of(lambda: shapes.learn(lesson(1 << 20))) < 1 << 20
    assert shapes.match(record(5), 0)


def test_columns_of_bounds_with_a_long_one_beside_a_short_one() -> None:
    def bounds(*values: bytes) -> BoundMap:
        pairs = [write_long(at) + write_long(len(value)) + value for at, value in enumerate(values, start=1)]
        return BoundMap(write_long(len(pairs)) + b"".join(pairs) + b"\0", 0)

    long = bytes(1 << 20)
    maps = [bounds(b"a", b"b"), bounds(long, b"c"), bounds(b"d", b"e")]

    assert most_memory_of(lambda: bound_columns(maps)) < 10 << 20
    assert {key: sorted(found) for key, found in bound_columns(maps).items()} == {
        1: sorted([b"a", long, b"d"]),
        2: [b"b", b"c", b"e"],
    }
