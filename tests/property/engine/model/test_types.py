"""Laws of types: their text has one canonical form, and any other text is refused in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.data_types.json_values import is_default_value
from app.engine.model.data_types.types import PrimitiveType, child_fields, parse_primitive, parse_type
from app.engine.model.schema import Schema
from tests.strategies.json_values import Json, json_values, texts
from tests.strategies.table_schemas import default_values, primitives, schema_documents


@given(primitives(3))
def test_canonical_text_is_a_fixed_point(text: str) -> None:
    assert parse_primitive(text).text == text
    assert parse_primitive(f" {text.upper() if 'geo' not in text else text} ").text == text


@given(texts(30) | st.from_regex(r"(decimal|fixed|geo[a-z]*)[(\[].*[)\]]"))
def test_any_text_is_a_type_or_refused_in_words(text: str) -> None:
    try:
        parsed = parse_primitive(text)
    except ValueError as error:
        assert "type" in str(error)  # noqa: PT017 - either outcome is right, and each has its law
        return

    assert parse_primitive(parsed.text) == parsed


@given(json_values())
def test_any_json_is_a_type_or_refused(value: Json) -> None:
    try:
        parsed = parse_type(value)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, and each has its law
        return

    assert child_fields(parsed) == ()


@given(st.data())
def test_default_of_a_type_is_a_value_of_it(data: st.DataObject) -> None:
    text = data.draw(primitives(3))
    default = data.draw(default_values(text))

    assert default is None or is_default_value(parse_primitive(text), default)


@given(st.data())
def test_any_json_can_be_a_default_or_not(data: st.DataObject) -> None:
    schema = Schema.from_object(data.draw(schema_documents(3, min_columns=1)))

    for field in schema.fields:
        if isinstance(field.type, PrimitiveType):
            assert is_default_value(field.type, data.draw(json_values())) in (True, False)
