"""What is kept by what clients sent takes little memory."""

from __future__ import annotations

from app.api.compression import accepts_gzip
from app.api.entrance.addresses import host_check
from app.api.names_in_paths import identifier_in_path, namespace_in_path
from app.api.short_arguments import LONGEST_KEPT, kept_if_short

LONG = "%F0%9F%A7%8A" * 40
"""A name of 40 characters that takes 480 in a path."""


def test_results_for_short_arguments_are_kept_and_for_long_ones_made_anew() -> None:
    made: list[tuple[str, str]] = []

    @kept_if_short(2)
    def join(first: str, second: str) -> str:
        made.append((first, second))
        return first + second

    short, long = ("a", "b"), ("a", "b" * LONGEST_KEPT)
    for arguments in (short, short, long, long):
        assert join(*arguments) == "".join(arguments)

    assert made == [short, long, long]


def test_names_in_paths_are_kept_if_they_are_short() -> None:
    assert identifier_in_path("ns", "t") is identifier_in_path("ns", "t")
    assert namespace_in_path("ns") is namespace_in_path("ns")
    assert identifier_in_path("ns", LONG) is not identifier_in_path("ns", LONG)
    assert namespace_in_path(LONG) is not namespace_in_path(LONG)


def test_long_headers_are_answered_too() -> None:
    blanks = b" " * LONGEST_KEPT
    assert accepts_gzip(b"br," + blanks + b"gzip")
    assert not accepts_gzip(b"br," + blanks)
    assert not host_check("127.0.0.1", ())(b"a" * LONGEST_KEPT + b".example.com")
    assert host_check("127.0.0.1", ())(b"a" * LONGEST_KEPT + b".localhost")
