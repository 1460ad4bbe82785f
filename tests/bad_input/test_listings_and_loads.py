"""Pages that nobody handed out, page sizes that are none, and parameters that make no sense."""

from __future__ import annotations

import base64
import zlib

import pytest

from app.api.responses.paging import page_token
from tests.bad_input.attacks import DELETE, GET, HEAD, Attack, check_refused
from tests.bad_input.victim import Victim
from tests.bad_input.wire import request, send

NS = "/v1/namespaces"
LISTINGS = (NS, f"{NS}/a/tables", f"{NS}/a/views")
BAD_SIZE = "Invalid pageSize …: it must be a whole number, 1 or more"
BAD_TOKEN = "Invalid page token: …"
SIZES = ("0", "-1", "abc", "1.5", "1e3", "", "00", "%D9%A3", "0x10", "1%00", "+5", "1,000", "null", "%20")


def forged(name: bytes, listing: str) -> str:
    """Return a token as the server makes them, checksum and all, for any name."""
    checksum = zlib.crc32(name, zlib.crc32(listing.encode())).to_bytes(4, "big")
    return base64.urlsafe_b64encode(b"\x01" + checksum + name).decode().rstrip("=")


TOKENS = {
    "words": "next",
    "noise": "%00%01%02",
    "not base64": "!!!!",
    "letters beyond ascii": "%C3%A4",
    "a number": "12345",
    "padding": "====",
    "another version": base64.urlsafe_b64encode(b"\x02abcd" + b"x").decode(),
    "cut": "AQ",
    "no checksum": base64.urlsafe_b64encode(b"\x01").decode().rstrip("="),
    "json": base64.urlsafe_b64encode(b'{"after": "a"}').decode().rstrip("="),
    "another listing's": page_token("a", "tables 999 zzz"),
    "long": "A" * 20_000,
    "sql": "'%20OR%20'1'='1",
}


@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.parametrize("size", SIZES)
def test_page_size_that_is_none_is_refused(victim: Victim, listing: str, size: str) -> None:
    check_refused(Attack("", GET, f"{listing}?pageSize={size}", 400, BAD_SIZE), victim)


@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_page_token_that_was_not_handed_out_is_refused(victim: Victim, listing: str, token: str) -> None:
    check_refused(Attack("", GET, f"{listing}?pageToken={token}&pageSize=1", 400, BAD_TOKEN), victim)


@pytest.mark.parametrize("name", [b"a\x00b", b"\xff\xfe", b"\xed\xa0\x80", b"", b"x" * 300, b".."])
def test_forged_token_of_a_name_that_cannot_be_is_refused(victim: Victim, name: bytes) -> None:
    warehouse_id = 1
    for listing, target in (
        (f"namespaces {warehouse_id} ", NS),
        (f"tables {warehouse_id} a", f"{NS}/a/tables"),
    ):
        check_refused(Attack("", GET, f"{target}?pageToken={forged(name, listing)}", 400, BAD_TOKEN), victim)


def test_token_of_one_namespace_is_refused_in_another(victim: Victim) -> None:
    first = send(victim.port, request(GET, f"{NS}/a/tables?pageSize=1", {}, None)).json()

    token = first["next-page-token"]

    check_refused(Attack("", GET, f"{NS}/a%1Fb/tables?pageToken={token}", 400, BAD_TOKEN), victim)
    check_refused(Attack("", GET, f"{NS}/a/views?pageToken={token}", 400, BAD_TOKEN), victim)
    check_refused(Attack("", GET, f"{NS}?pageToken={token}", 400, BAD_TOKEN), victim)


def test_huge_page_size_is_a_large_one(victim: Victim) -> None:
    answer = send(victim.port, request(GET, f"{NS}/a/tables?pageSize={10**30}", {}, None))

    assert answer.status == 200
    assert "next-page-token" not in answer.json()


PARAMETERS = [
    Attack(
        "snapshots in the wrong case",
        GET,
        f"{NS}/a/tables/v2?snapshots=ALL",
        400,
        "Invalid snapshots 'ALL': it must be all or refs",
    ),
    Attack(
        "some snapshots",
        GET,
        f"{NS}/a/tables/v2?snapshots=some",
        400,
        "Invalid snapshots 'some': it must be all or refs",
    ),
    Attack(
        "a list of snapshots",
        GET,
        f"{NS}/a/tables/v2?snapshots=all,refs",
        400,
        "Invalid snapshots 'all,refs': …",
    ),
    Attack("snapshots of nul", GET, f"{NS}/a/tables/v2?snapshots=%00", 400, "Invalid snapshots '\\x00': …"),
    Attack(
        "perhaps a purge",
        DELETE,
        f"{NS}/a/tables/t?purgeRequested=maybe",
        400,
        "Invalid purgeRequested 'maybe': it must be true or false",
    ),
    Attack(
        "purge of 1",
        DELETE,
        f"{NS}/a/tables/t?purgeRequested=1",
        400,
        "Invalid purgeRequested '1': it must be true or false",
    ),
    Attack(
        "purge of a script",
        DELETE,
        f"{NS}/a/tables/t?purgeRequested={'x' * 5_000}",
        400,
        "Invalid purgeRequested 'xxx…x': it must be true or false",
    ),
    Attack("empty level above", GET, f"{NS}?parent=%1F", 400, "Invalid namespace level: it is empty"),
    Attack(
        "nul above", GET, f"{NS}?parent=a%00", 400, "Invalid namespace level 'a\\x00': it contains '\\x00'"
    ),
    Attack("dots above", GET, f"{NS}?parent=..", 400, "Invalid namespace level '..': no path can hold it"),
    Attack(
        "long name above",
        GET,
        f"{NS}?parent={'x' * 256}",
        400,
        "Invalid namespace level: 256 characters are more than 255",
    ),
    Attack("head with a bad query", HEAD, f"{NS}/a/tables/nope?x=%ff", 404),
]


@pytest.mark.parametrize("attack", PARAMETERS, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


def test_unknown_parameters_and_repetitions_are_passed_over(victim: Victim) -> None:
    targets = (
        f"{NS}/a/tables/v2?novel=1&novel=2&&=&x",
        f"{NS}/a/tables/v2?snapshots=refs&snapshots=nonsense",
    )

    answers = [send(victim.port, request(GET, target, {}, None)) for target in targets]

    assert [answer.status for answer in answers] == [200, 200]
    assert len(answers[1].json()["metadata"]["snapshots"]) == 2
