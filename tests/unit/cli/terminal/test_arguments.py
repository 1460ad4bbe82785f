"""Names and properties as they are written on the command line."""

from __future__ import annotations

import pytest
import typer

from app.cli.terminal.arguments import identifier_from, namespace_from, properties_from, written
from app.engine.model.identifiers import Namespace, TableIdentifier


@pytest.mark.parametrize(
    ("text", "separator", "levels"),
    [
        ("a", ".", ("a",)),
        ("a.b.c", ".", ("a", "b", "c")),
        ("a.b/c d", "/", ("a.b", "c d")),
        ("a::b:c", "::", ("a", "b:c")),
        ("ü/🗼", "/", ("ü", "🗼")),
    ],
)
def test_a_namespace_is_read_and_written(text: str, separator: str, levels: tuple[str, ...]) -> None:
    namespace = namespace_from(text, separator)

    assert namespace == Namespace(levels)
    assert written(namespace, separator) == text


def test_the_last_part_of_an_identifier_is_its_name() -> None:
    identifier = identifier_from("a.b.t", ".")

    assert identifier == TableIdentifier(Namespace(("a", "b")), "t")
    assert written(identifier, ".") == "a.b.t"


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a\x01b", "x" * 300])
def test_a_namespace_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        namespace_from(text, ".")


@pytest.mark.parametrize("text", ["t", "a.", ".t", "a.\x01", "\x01.t"])
def test_an_identifier_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        identifier_from(text, ".")


def test_an_empty_separator_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="the separator is empty"):
        namespace_from("a", "")


def test_properties_are_split_at_the_first_equals_sign() -> None:
    assert properties_from(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    assert properties_from(None) == {}


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_a_property_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not <key>=<value>"):
        properties_from([text])
