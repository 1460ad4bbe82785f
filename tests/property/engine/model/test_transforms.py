"""Laws of transforms: one canonical text each, and any other text is refused in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.data_types.transforms import find_transform, parse_transform
from app.engine.model.data_types.types import parse_primitive
from tests.strategies.json_values import texts
from tests.strategies.partitions_and_orders import transforms
from tests.strategies.table_schemas import primitives


@given(st.data())
def test_fitting_transform_applies_to_its_type(data: st.DataObject) -> None:
    kind = data.draw(primitives(3))
    text = data.draw(transforms(kind))

    transform = parse_transform(text)

    assert transform.applies_to(parse_primitive(kind))
    assert str(transform) == text
    assert parse_transform(text.upper()) == transform


@given(texts(20) | st.from_regex(r"(bucket|truncate)\[.*\]"))
def test_any_text_is_a_transform_or_refused_in_words(text: str) -> None:
    try:
        transform = parse_transform(text)
    except ValueError as error:
        assert "ransform" in str(error)  # noqa: PT017 - either outcome is right, and each has its law
        assert find_transform(text) is None
        return

    assert parse_transform(str(transform)) == transform == find_transform(text)
