"""Names and prefixes in paths, as every client encodes them."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import pytest

from app.api.names_in_paths import (
    decode_piece,
    encode_prefix,
    identifier_in_path,
    namespace_in_path,
    namespaces_in_parent,
    parameters_in_query,
    split_prefix,
    warehouse_in_path,
)
from app.catalog.warehouses import RESERVED_NAMES
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import InvalidName, InvalidRequest

NAMES = "plain|a b|a+b|new/db|new.db|...|tab%le|50%|søster|雪|🧊|a&b=c?d#e|%2F|'\"<>".split("|")


@pytest.mark.parametrize("name", NAMES)
def test_name_from_form_encoding_client_is_decoded(name: str) -> None:
    # Java encodes with URLEncoder: a space becomes a plus sign.
    piece = quote_plus(name, safe=".-*_")

    assert decode_piece(piece) == name


@pytest.mark.parametrize("name", NAMES)
def test_name_from_percent_encoding_client_is_decoded(name: str) -> None:
    # PyIceberg encodes with quote: a space becomes %20.
    piece = quote(name, safe="")

    assert decode_piece(piece) == name


@pytest.mark.parametrize(
    ("piece", "name"), [("a%2Bb", "a+b"), ("a+b", "a b"), ("a%20b", "a b"), ("a%252Fb", "a%2Fb")]
)
def test_plus_is_a_space_and_encoded_plus_is_a_plus(piece: str, name: str) -> None:
    assert decode_piece(piece) == name


@pytest.mark.parametrize("piece", ["%", "a%", "%1", "%zz", "%u0041", "100%", "a%2", "%-1"])
def test_broken_percent_sign_is_refused(piece: str) -> None:
    with pytest.raises(InvalidRequest, match="hexadecimal"):
        decode_piece(piece)


@pytest.mark.parametrize("piece", ["%FF", "%C3%28", "%ED%A0%80", "%C0%AF", "%80"])
def test_bytes_that_are_not_utf8_are_refused(piece: str) -> None:
    with pytest.raises(InvalidRequest, match="UTF-8"):
        decode_piece(piece)


def test_namespace_levels_are_split_after_decoding() -> None:
    assert namespace_in_path("accounting%1Ftax") == Namespace(("accounting", "tax"))


def test_dots_and_slashes_stay_inside_their_level() -> None:
    assert namespace_in_path("a.b%1Fc%2Fd") == Namespace(("a.b", "c/d"))


@pytest.mark.parametrize(
    "piece", ["a%1F", "%1Fa", "a%1F%1Fb", "a%00b", "a%0Ab", ".", "%2E%2E", "a%1F..", "x" * 256]
)
def test_level_that_cannot_be_a_name_is_refused(piece: str) -> None:
    with pytest.raises(InvalidName):
        namespace_in_path(piece)


def test_identifier_keeps_separator_out_of_table_names() -> None:
    assert identifier_in_path("a%1Fb", "t.x") == TableIdentifier(Namespace(("a", "b")), "t.x")
    with pytest.raises(InvalidName):
        identifier_in_path("a", "t%1Fx")


@pytest.mark.parametrize(
    ("raw", "path", "prefix"),
    [
        (b"/v1/namespaces", "/v1/namespaces", None),
        (b"/v1/sales/namespaces", "/v1/namespaces", "sales"),
        (b"/v1/namespaces/namespaces", "/v1/namespaces/namespaces", None),
        (b"/v1/namespaces/namespaces/tables", "/v1/namespaces/namespaces/tables", None),
        (b"/v1/sales/namespaces/a%2Fb/tables/t", "/v1/namespaces/a%2Fb/tables/t", "sales"),
        (b"/v1/a%2Fb/tables/rename", "/v1/tables/rename", "a/b"),
        (b"/v1/a+b/views/rename", "/v1/views/rename", "a b"),
        (b"/v1/sales/transactions/commit", "/v1/transactions/commit", "sales"),
        (b"/v1/config", "/v1/config", None),
        (b"/v1/config/namespaces", "/v1/config/namespaces", None),
        (b"/v1/sales/config", "/v1/sales/config", None),
        (b"/v1/a/b/namespaces", "/v1/a/b/namespaces", None),
        (b"/v1//namespaces", "/v1//namespaces", None),
        (b"/v2/sales/namespaces", "/v2/sales/namespaces", None),
        (b"/v1/sales", "/v1/sales", None),
        (b"/v1/commits", "/v1/commits", None),
        (b"/v1/commits/01a2", "/v1/commits/01a2", None),
        (b"/v1/sales/commits/01a2", "/v1/commits/01a2", "sales"),
        (b"/v1/commits/commits/01a2", "/v1/commits/01a2", "commits"),
        (b"/v1/commits/namespaces", "/v1/namespaces", "commits"),
        (b"/", "/", None),
    ],
)
def test_prefix_is_the_piece_before_a_resource(raw: bytes, path: str, prefix: str | None) -> None:
    assert split_prefix(raw) == (path, prefix)


@pytest.mark.parametrize("name", NAMES)
def test_published_prefix_comes_back_as_the_warehouse_name(name: str) -> None:
    raw = f"/v1/{encode_prefix(name)}/namespaces".encode("ascii")

    assert split_prefix(raw) == ("/v1/namespaces", name)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_reserved_name_is_no_prefix(name: str) -> None:
    assert split_prefix(f"/v1/{name}/namespaces".encode("ascii"))[1] is None


def test_path_with_bytes_outside_ascii_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="ASCII"):
        split_prefix("/v1/nämespaces".encode())


def test_prefix_that_cannot_be_decoded_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        split_prefix(b"/v1/%FF/namespaces")


def test_warehouse_in_path_is_one_decoded_name() -> None:
    assert warehouse_in_path("a%2Fb") == "a/b"


def test_empty_parent_is_the_top() -> None:
    assert namespaces_in_parent("", "") == []


def test_parent_decoded_once_has_one_reading() -> None:
    assert namespaces_in_parent("a\x1fb", "a\x1fb") == [Namespace(("a", "b"))]


def test_parent_encoded_twice_has_a_second_reading() -> None:
    assert namespaces_in_parent("a%1Fb%20c", "a%1Fb%20c") == [
        Namespace(("a%1Fb%20c",)),
        Namespace(("a", "b c")),
    ]


def test_second_reading_that_makes_no_sense_is_left_out() -> None:
    assert namespaces_in_parent("100%", "100%") == [Namespace(("100%",))]


def test_parent_with_a_plus_has_a_second_reading() -> None:
    assert namespaces_in_parent("a b", "a+b") == [Namespace(("a b",)), Namespace(("a+b",))]


def test_parent_with_a_plus_and_a_percent_sign_that_makes_no_sense_has_a_second_reading() -> None:
    assert namespaces_in_parent("100% a", "100%+a") == [Namespace(("100% a",)), Namespace(("100%+a",))]


def test_first_of_equal_parameters_counts() -> None:
    assert parameters_in_query(b"a=1&a=2&b=") == {"a": "1", "b": ""}


def test_query_is_decoded_once() -> None:
    assert parameters_in_query(b"parent=a%1Fb+c%252F") == {"parent": "a\x1fb c%2F"}


@pytest.mark.parametrize("query", [b"a=%FF", "a=ü".encode()])
def test_query_that_is_not_utf8_is_refused(query: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parameters_in_query(query)
