"""Names of namespaces and tables: what can be stored, found and sent back unchanged."""

from __future__ import annotations

import pytest

from app.engine.model.identifiers import (
    Namespace,
    TableIdentifier,
    check_identifier,
    check_name,
    check_namespace,
)
from app.errors import InvalidName


def test_names_are_shown_with_dots() -> None:
    identifier = TableIdentifier(Namespace(("a", "b.c")), "t")

    assert str(identifier) == "a.b.c.t"


@pytest.mark.parametrize(
    "name", ["a", "new/db", "ta.ble", " ", "a+b", "%1F", "😀", "x" * 255, "ü\u2028", "..."]
)
def test_name_that_survives_is_taken(name: str) -> None:
    identifier = TableIdentifier(Namespace((name,)), name)

    assert check_name(name, "name") == name
    assert check_identifier(identifier) is identifier
    assert check_namespace(identifier.namespace) is identifier.namespace


@pytest.mark.parametrize(
    "name", ["", ".", "..", "x" * 256, "a\x1fb", "a\nb", "\x00", "a\x7f", "\ud800", "a\udfff"]
)
def test_name_that_cannot_be_stored_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match=r"^Invalid name"):
        check_identifier(TableIdentifier(Namespace(("a",)), name))
    with pytest.raises(InvalidName, match=r"^Invalid namespace level"):
        check_namespace(Namespace(("a", name)))


def test_namespace_without_levels_is_refused() -> None:
    with pytest.raises(InvalidName, match=r"^Invalid namespace: it has no levels$"):
        check_namespace(Namespace(()))


def test_namespace_that_no_index_can_hold_is_refused() -> None:
    check_namespace(Namespace(("x" * 249,) * 4))

    with pytest.raises(InvalidName, match=r"^Invalid namespace: \d+ bytes are more than 1000$"):
        check_namespace(Namespace(("ü" * 255,) * 2))
