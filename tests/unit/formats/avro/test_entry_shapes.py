"""What is learnt from records has bounds in time and memory."""

from __future__ import annotations

import pytest

from app.formats.avro import entry_shapes
from app.formats.avro.entry_shapes import EntryShapes
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
