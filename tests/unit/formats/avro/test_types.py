"""How values are skipped and traced, where there are many of them."""

from __future__ import annotations

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
