"""Table properties: reading numbers and switches."""

from __future__ import annotations

import pytest

from app.engine.model.settings.properties import bool_property, check_column_metrics, int_property
from app.errors import InvalidUpdate
from tests.unit.engine.documents import column, list_of, schema, struct


@pytest.mark.parametrize(
    ("text", "number"), [("5", 5), ("-1", -1), ("+7", 7), ("007", 7), ("9223372036854775807", 2**63 - 1)]
)
def test_whole_number_is_read(text: str, number: int) -> None:
    assert int_property({"a": text}, "a", 3) == number


def test_number_that_is_not_set_is_the_default() -> None:
    assert int_property({}, "a", 3) == 3


@pytest.mark.parametrize(
    "text", ["", " 5", "5 ", "5.0", "1e3", "1_000", "٣", "five", "9223372036854775808", "9" * 5_000, "5\n"]
)
def test_text_that_clients_cannot_read_as_a_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidUpdate, match=r"^Table property a must be a whole number, found"):
        int_property({"a": text}, "a", 3)


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), (" TRUE ", True), ("false", False), ("yes", False), ("", False)]
)
def test_switch_is_on_for_true_only(text: str, *, expected: bool) -> None:
    assert bool_property({"a": text}, "a", default=not expected) is expected


@pytest.mark.parametrize("default", [True, False])
def test_switch_that_is_not_set_is_the_default(*, default: bool) -> None:
    assert bool_property({}, "a", default=default) is default


def test_column_metrics_name_columns_that_exist() -> None:
    columns = schema(column(1, "a"), column(2, "l", list_of(3, struct(column(4, "x")))))
    check_column_metrics(
        {
            "write.metadata.metrics.column.a": "full",
            "write.metadata.metrics.column.l.element.x": "none",
            "write.metadata.metrics.column.l.x": "none",
            "write.metadata.metrics.default": "full",
        },
        columns,
    )

    with pytest.raises(InvalidUpdate) as caught:
        check_column_metrics({"write.metadata.metrics.column.b": "full"}, columns)
    assert str(caught.value) == (
        "Invalid metrics config, could not find column b from table prop write.metadata.metrics.column.b in schema"
    )
