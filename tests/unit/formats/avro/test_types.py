"""How values are skipped and traced, where there are many of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.formats.avro.schema_types import record_type
from app.formats.avro.types import MAX_TOKENS, NotTraceable, Token, write_long

COUNTS = (
    '{"type": "record", "name": "r", "fields": [{"name": "m", "type": {"type": "array", "items": {"type": "record",'
    ' "name": "p", "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "long"}]}}}]}'
)


def packed(count: int) -> bytes:
    """Return a map of counts, with numbers of one to nine bytes."""
    pairs = (write_long(number) + write_long(1 << (number % 62)) for number in range(count))
    return (write_long(count) if count else b"") + b"".join(pairs) + write_long(0)


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2000, 12_345])
def test_long_maps_of_counts_are_skipped_to_their_end(count: int) -> None:
    kind, content = record_type(COUNTS, ()), packed(count)

    assert kind.skip(b"\x07" + content + b"\x00", 1) == 1 + len(content)
    assert len(kind.read(content, 0)[0]["m"]) == count


def test_a_long_map_of_counts_that_is_cut_off_is_refused() -> None:
    kind, content = record_type(COUNTS, ()), packed(5_000)

    with pytest.raises(IndexError):
        kind.skip(content[: len(content) // 2], 0)


def test_no_more_of_a_record_is_traced_than_an_expression_may_have() -> None:
    tokens: list[Token] = []

    with pytest.raises(NotTraceable):
        record_type(COUNTS, ()).trace(packed(1_000_000), 0, tokens)

    assert len(tokens) <= MAX_TOKENS


def doubled(schema: Any, times: int) -> Any:
    """Return a record in which a type is so many times twice, by its name the second time."""
    for level in range(times):
        again = schema if isinstance(schema, str) else schema["name"]
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": again}]
        schema = {"type": "record", "name": f"r{level}", "fields": fields}
    return schema


def test_named_types_that_use_each_other_become_no_more_fields_than_are_read() -> None:
    # To go through 2³⁵ values that take no byte would have no end.
    with pytest.raises(ValueError, match="too many fields"):
        record_type(json.dumps(doubled("null", 35)), ())
    assert record_type(json.dumps(doubled("null", 10)), ()).skip(b"", 0) == 0


def test_an_item_of_an_array_has_few_fields() -> None:
    def array_of(items: Any) -> str:
        fields = [{"name": "a", "type": {"type": "array", "items": items}}]
        return json.dumps({"type": "record", "name": "r", "fields": fields})

    with pytest.raises(ValueError, match="items with too many fields"):
        record_type(array_of(doubled("long", 6)), ())
    # An expression for a thousand of such items would take minutes and gigabytes to compile.
    content = write_long(10_000) + b"\x02" * 320_000 + b"\x00"
    assert record_type(array_of(doubled("long", 5)), ()).skip(content, 0) == len(content)


def test_names_are_looked_for_in_the_namespace_where_they_stand_first() -> None:
    """As other readers do: they must not find another type, or none, in the same bytes."""

    def both(*inner: Any) -> str:
        outer = {"name": "a", "type": {"type": "fixed", "name": "n", "size": 3}}
        record = {"type": "record", "name": "space.n", "fields": list(inner)}
        return json.dumps({"type": "record", "name": "r", "fields": [outer, {"name": "b", "type": record}]})

    with pytest.raises(ValueError, match="'n' that refers to itself"):
        record_type(both({"name": "c", "type": ["null", "n"]}), ())
    with pytest.raises(ValueError, match=r"'space\.n' that refers to itself"):
        record_type(both({"name": "c", "type": ["null", "space.n"]}), ())
    with pytest.raises(ValueError, match=r"no type 'x\.n'"):
        record_type(both({"name": "c", "type": ["null", "x.n"]}), ())
