"""Table properties: reading numbers and switches, and refusing nonsense."""

from __future__ import annotations

import pytest

from app.engine.model.properties import bool_property, check_column_metrics, check_properties, int_property
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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("commit.retry.num-retries", "x", "must be a whole number, found 'x'"),
        ("commit.retry.num-retries", "-1", "must be at least 0, found -1"),
        ("commit.retry.min-wait-ms", "-1", "must be at least 0, found -1"),
        ("commit.retry.max-wait-ms", "-1", "must be at least 0, found -1"),
        ("commit.retry.total-timeout-ms", "2147483648", "must be at most 2147483647, found 2147483648"),
        ("commit.status-check.num-retries", "-1", "must be at least 0, found -1"),
        ("commit.manifest.min-count-to-merge", "1.5", "must be a whole number, found '1.5'"),
        ("write.metadata.previous-versions-max", "many", "must be a whole number, found 'many'"),
        (
            "write.metadata.previous-versions-max",
            "-3000000000",
            "must be at most 2147483647, found -3000000000",
        ),
        ("version.history.num-entries", "0", "must be at least 1, found 0"),
        ("gc.enabled", "yes", "must be true or false, found 'yes'"),
        ("write.metadata.delete-after-commit.enabled", "1", "must be true or false, found '1'"),
        ("commit.manifest-merge.enabled", "", "must be true or false, found ''"),
        ("replace.drop-dialect.allowed", "x", "must be true or false, found 'x'"),
        ("write.metadata.compression-codec", "zstd", "must be none or gzip, found 'zstd'"),
    ],
)
def test_nonsense_is_refused_with_what_is_expected(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidUpdate) as caught:
        check_properties({"harmless": "x", name: value})

    assert str(caught.value) == f"Table property {name} {message}"


def test_values_that_make_sense_pass() -> None:
    check_properties(
        {
            "commit.retry.num-retries": "0",
            "commit.manifest.target-size-bytes": "8589934592",
            "write.metadata.previous-versions-max": "-1",
            "gc.enabled": " TRUE",
            "write.metadata.compression-codec": "GZIP",
            "anything.else": "\x00",
        }
    )


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
