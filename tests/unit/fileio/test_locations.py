"""Locations: schemes, being inside, joining, and local paths, hostile cases first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidLocation
from app.fileio import locations
from app.fileio.locations import (
    bucket_and_key,
    flaw_of,
    folder_around,
    folder_name,
    folders_of,
    is_inside,
    local_path,
    loose_place_of,
    may_be_inside,
    place_of,
    scheme_of,
    store_of,
)


@pytest.mark.parametrize(
    ("location", "scheme"),
    [
        ("/x", "file"),
        ("/a:b/c", "file"),
        ("file:/x", "file"),
        ("file:///x", "file"),
        ("FILE:/x", "file"),
        ("s3://b/k", "s3"),
        ("S3A://b/k", "s3a"),
        ("abfss://c@a.dfs.core.windows.net/k", "abfss"),
        ("memory://x", "memory"),
        ("a+b-c.d://x", "a+b-c.d"),
    ],
)
def test_scheme_is_told_in_lower_case(location: str, scheme: str) -> None:
    assert scheme_of(location) == scheme


@pytest.mark.parametrize(
    ("location", "flaw"),
    [
        ("file:" + "/b" * 1_024, None),
        ("file:" + "/b" * 1_025, "its path has 1025 segments, more than 1024"),
        ("hdfs://n" + "/b" * 1_025, "its path has 1025 segments, more than 1024"),
        ("/" + "b" * 4_094, None),
        ("/" + "b" * 4_095, "its path has 4096 bytes, more than the 4095 that file locations have"),
        ("s3a://b/" + "b" * 1_024, None),
        ("s3a://b/" + "b" * 1_022 + "é", None),
        (
            "s3a://b/" + "b" * 1_023 + "é",
            "its path has 1025 bytes, more than the 1024 that s3 locations have",
        ),
        ("gs://b/" + "b" * 1_025, "its path has 1025 bytes, more than the 1024 that gs locations have"),
        ("memory://b/" + "b" * 4_096, None),
    ],
)
def test_path_that_no_store_has_is_a_flaw(location: str, flaw: str | None) -> None:
    assert flaw_of(location) == flaw


@pytest.mark.parametrize(
    "store", ["s3://b", "s3a://a.b-c_d", "gs://B", "abfs://c", "wasb://$web@a.host", "abfss://c@a"]
)
def test_authority_that_a_store_can_have_is_no_flaw(store: str) -> None:
    assert flaw_of(f"{store}/t") is None


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("s3://key@b", "a bucket: …"),
        ("s3a://b:443", "a bucket: …"),
        ("s3://b.", "a bucket: …"),
        ("gs://b:443", "a bucket: …"),
        ("abfss://c@a:443", "container@account.host, …"),
        ("abfss://c@a.dfs.core.windows.net:443", "container@account.host, …"),
        ("wasbs://c@a.blob.core.windows.net.", "container@account.host, …"),
        ("abfs://c@", "container@account.host, …"),
        ("abfs://@a", "container@account.host, …"),
        ("abfs://c@a@b", "container@account.host, …"),
    ],
)
def test_authority_that_no_store_has_is_a_flaw(store: str, expected: str) -> None:
    authority = store.partition("://")[2]

    assert (flaw_of(f"{store}/t") or "").startswith(f"{authority!r} cannot be {expected.removesuffix('…')}")
    assert not is_inside(f"{store}/t", store)


@pytest.mark.parametrize(
    ("location", "store"),
    [
        ("s3://b/k/l", "s3://b"),
        ("S3A://b", "S3A://b"),
        ("abfss://c@a/k", "abfss://c@a"),
        ("/x", ""),
        ("file:/x", ""),
    ],
)
def test_store_is_scheme_and_authority_as_spelled(location: str, store: str) -> None:
    assert store_of(location) == store


@pytest.mark.parametrize(
    "location", ["", "x", "x/y", "./x", " s3://b/k", "\ns3://b", "://b/k", "1s3://b/k", "é:/x"]
)
def test_what_has_no_scheme_and_no_root_is_no_location(location: str) -> None:
    with pytest.raises(InvalidLocation, match="Not a location"):
        scheme_of(location)


@pytest.mark.parametrize(
    ("location", "root"),
    [
        ("s3://b/wh/t", "s3://b/wh"),
        ("s3://b/wh/t/", "s3://b/wh/"),
        ("s3://b/wh", "s3://b/wh"),
        ("s3://b/wh/", "s3://b/wh"),
        ("s3://b/wh", "s3://b/wh/"),
        ("s3://b/anything", "s3://b"),
        ("s3://b/anything", "s3://b/"),
        ("s3a://b/wh/t", "s3://b/wh"),
        ("s3://b/wh/t", "s3n://b/wh"),
        ("S3://b/wh/t", "s3://b/wh"),
        ("file:/wh/t", "file:///wh"),
        ("file:///wh/t", "/wh"),
        ("/wh/t", "file:/wh"),
        ("file:/wh//t", "file:/wh/"),
        ("file:////wh/t", "file:/wh"),
        ("/wh/t", "/"),
        ("abfss://c@a.dfs.core.windows.net/wh/t", "abfs://c@a.dfs.core.windows.net/wh"),
        ("hdfs://nn:8020//wh/t", "hdfs://nn:8020/wh"),
        ("memory:///wh/t", "memory:///wh"),
        ("memory://m/wh/t", "memory://m"),
        ("s3://b/wh/a..b/..c/d../...", "s3://b/wh"),
        ("s3://b/wh/50%/a%20b/ü", "s3://b/wh"),
        ("/wh/what?/no#1", "/wh"),
        ("oss://b/wh/t", "oss://b/wh"),
    ],
)
def test_a_location_below_its_root_is_inside(location: str, root: str) -> None:
    assert is_inside(location, root)


@pytest.mark.parametrize(
    ("location", "root"),
    [
        # a sibling with the same beginning
        ("s3://b/wh2/t", "s3://b/wh"),
        ("s3://b/whatever", "s3://b/wh/"),
        ("s3://bb/wh/t", "s3://b"),
        ("/wh2", "/wh"),
        # above or elsewhere
        ("s3://b", "s3://b/wh"),
        ("s3://b/WH/t", "s3://b/wh"),
        ("s3://B/wh/t", "s3://b/wh"),
        ("gs://b/wh/t", "s3://b/wh"),
        ("/b/wh", "s3://b/wh"),
        ("hdfs://other:8020/wh/t", "hdfs://nn:8020/wh"),
        ("abfss://c@b.dfs.core.windows.net/wh/t", "abfss://c@a.dfs.core.windows.net/wh"),
        ("memory:///wh", "memory://wh"),
        # climbing out, as some client might read it
        ("s3://b/wh/../x", "s3://b/wh"),
        ("s3://b/wh/..", "s3://b/wh"),
        ("s3://b/wh/t/../../../x", "s3://b/wh"),
        ("s3://b/wh/./t", "s3://b/wh"),
        ("file:/wh/../etc/passwd", "file:/wh"),
        ("/wh/t/..", "/wh"),
        ("/wh/../wh/t", "/wh"),
        ("s3://b/wh/%2e%2e/x", "s3://b/wh"),
        ("s3://b/wh/.%2E/x", "s3://b/wh"),
        ("s3://b/wh/%2e/x", "s3://b/wh"),
        ("s3://b/wh/..%2fx", "s3://b/wh"),
        ("s3://b/wh/t%2f..%2f..%2fx", "s3://b/wh"),
        ("s3://b/wh/..\\x", "s3://b/wh"),
        ("s3://b/wh/t%5C..%5Cx", "s3://b/wh"),
        # cut short by some client
        ("s3://b/wh?/t", "s3://b/wh"),
        ("s3://b/wh/t?versionId=1", "s3://b/wh"),
        ("s3://b/wh/t#x", "s3://b/wh"),
        ("gs://b/wh/t#x", "gs://b/wh"),
        # folded by some client
        ("s3://b//wh/t", "s3://b/wh"),
        ("s3://b/wh//t", "s3://b/wh"),
        ("s3://b/wh/t\\x", "s3://b/wh"),
        # in a bucket's place
        ("s3://user:password@b/wh/t", "s3://b/wh"),
        ("s3://b@evil/wh/t", "s3://b/wh"),
        ("s3:///b/wh/t", "s3://b/wh"),
        ("s3:/b/wh/t", "s3://b/wh"),
        ("s3:b/wh/t", "s3://b/wh"),
        ("file://wh/t", "/wh"),
        ("file://localhost/wh/t", "/wh"),
        ("//wh/t", "/wh"),
        ("file:wh/t", "/wh"),
        # not text that a path can hold
        ("/wh/t\x00", "/wh"),
        ("s3://b/wh/\n", "s3://b/wh"),
        ("s3://b/wh/\x7f", "s3://b/wh"),
        ("s3://b/wh/\ud800", "s3://b/wh"),
        ("s3://b/wh/low\udc80", "s3://b/wh"),
        # no location at all
        ("", "/"),
        ("wh/t", "wh"),
        ("", ""),
        # a root that is not fit to hold anything
        ("s3://b/wh/../wh/t", "s3://b/wh/../wh"),
        ("/wh/t", "/wh/."),
    ],
)
def test_what_some_client_takes_for_another_place_is_not_inside(location: str, root: str) -> None:
    assert not is_inside(location, root)


@pytest.mark.parametrize(
    ("location", "word"),
    [
        ("s3://b/a/../c", "'..'"),
        ("s3://b/a?b", "'?'"),
        ("s3://b/a//c", "'//'"),
        ("s3://b/a\\c", "backslash"),
        ("s3://b/a\tc", "control"),
        ("s3://b/\ud800", "surrogate"),
        ("a/b", "Not a location"),
        ("s3:///k", "s3://bucket/key"),
        ("file://h/x", "host"),
    ],
)
def test_flaw_says_what_is_wrong(location: str, word: str) -> None:
    flaw = flaw_of(location)

    assert flaw is not None
    assert word in flaw


def test_flaw_never_repeats_a_password() -> None:
    flaw = flaw_of("s3://user:hunter2@b/k")

    assert flaw is not None
    assert "hunter2" not in flaw


_NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\%?#."), min_size=1)


@given(
    names=st.lists(_NAMES, min_size=1, max_size=4),
    root=st.sampled_from(["s3://b/wh", "file:/wh", "memory://m"]),
)
def test_what_a_location_is_extended_to_is_inside_it(names: list[str], root: str) -> None:
    assert is_inside("/".join([root, *names]), root)


@given(location=st.text(), root=st.text())
def test_any_text_gets_an_answer(location: str, root: str) -> None:
    if is_inside(location, root):
        assert flaw_of(location) is None
        assert flaw_of(root) is None


@given(
    pieces=st.lists(st.sampled_from(["a", "b", "..", ".", "%2e%2e", "", "/", "..%2f"]), max_size=6),
    base=st.sampled_from(["/r/a", "file:///r/a", "s3://b/a"]),
)
def test_what_is_inside_stays_inside_when_decoded_and_folded(pieces: list[str], base: str) -> None:
    """No reading of an accepted location, decoded and with its dots folded, may leave the root."""
    location = base + "/" + "/".join(pieces)

    if is_inside(location, base):
        read = location.replace("%2e", ".").replace("%2f", "/")
        folded: list[str] = []
        for piece in read.removeprefix(base).split("/"):
            if piece == "..":
                assert folded, f"{location} climbs out of {base}"
                folded.pop()
            elif piece not in {"", "."}:
                folded.append(piece)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/x/y", "/x/y"),
        ("file:/x/y", "/x/y"),
        ("file:///x/y", "/x/y"),
        ("FILE:/x", "/x"),
        ("File:///x", "/x"),
        ("file:////x", "//x"),
        ("file:/a%20b", "/a%20b"),
        ("file:/a b?c#d", "/a b?c#d"),
        ("///x", "/x"),
        ("/ü/日本", "/ü/日本"),
        ("/a:b", "/a:b"),
    ],
)
def test_local_path_is_literal(location: str, path: str) -> None:
    assert local_path(location) == path


@pytest.mark.parametrize(
    "location",
    [
        "file:x",
        "file:",
        "file://",
        "file://localhost/x",
        "file://tmp/x",
        "//tmp/x",
        "x",
        "s3://b/k",
        "C:\\x",
        "",
    ],
)
def test_what_hadoop_would_not_open_is_no_local_path(location: str) -> None:
    with pytest.raises(InvalidLocation):
        local_path(location)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://b/k/l", ("b", "k/l")),
        ("s3://b", ("b", "")),
        ("s3://b/", ("b", "")),
        ("s3://b/a%20b c?d#e", ("b", "a%20b c?d#e")),
        ("abfss://c@a.host/k", ("c@a.host", "k")),
        ("hdfs://nn:8020/x", ("nn:8020", "x")),
        ("hdfs:///x", ("", "x")),
    ],
)
def test_bucket_and_key_are_literal(location: str, expected: tuple[str, str]) -> None:
    assert bucket_and_key(location) == expected


def test_a_password_in_the_buckets_place_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidLocation) as raised:
        bucket_and_key("s3://user:hunter2@b/k")

    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("location", "folders"),
    [
        ("s3a://b/wh/t/x", ["s3://b/", "s3://b/wh/", "s3://b/wh/t/"]),
        ("/a//b/x", ["file:///", "file:///a/", "file:///a/b/"]),
        ("file:/x", ["file:///"]),
        ("memory://m/x", ["memory://m/"]),
    ],
)
def test_folders_around_a_file(location: str, folders: list[str]) -> None:
    assert folders_of(location) == folders


@pytest.mark.parametrize("spelling", ["file:///a/b", "file:/a/b/", "/a//b", "/a/b//"])
def test_one_folder_has_one_name(spelling: str) -> None:
    assert folder_name(spelling) == "file:///a/b/"


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("hdfs:///a/t", "hdfs:///a/t/"),
        ("hdfs://nn/a/t/", "hdfs:///a/t/"),
        ("hdfs://NN.example.com:8020//a/t", "hdfs:///a/t/"),
        ("webhdfs://nn:9870/a/t", "hdfs:///a/t/"),
        ("gcs://b/t", "gs://b/t/"),
        ("abfss://c@acc.dfs.core.windows.net/t", "abfs://c@acc/t/"),
        ("wasb://C@ACC.blob.core.windows.net/t", "abfs://c@acc/t/"),
        ("abfs://c@acc.privatelink.dfs.core.windows.net/t/", "abfs://c@acc/t/"),
        ("abfs://c/t", "abfs://c/t/"),
        ("abfs://c@/t", "abfs://c/t/"),
        ("s3a://Lake/t", "s3://Lake/t/"),
    ],
)
def test_what_may_be_one_folder_has_one_name(location: str, name: str) -> None:
    assert folder_name(location) == folder_name(name) == name
    assert folders_of(f"{location.rstrip('/')}/f")[-1] == folder_around(f"{location.rstrip('/')}/f") == name
    assert place_of(f"{location.rstrip('/')}/f") == place_of(f"{name}f")


@pytest.mark.parametrize(
    ("location", "root"),
    [
        ("hdfs://nn:8020/wh/t", "hdfs:///wh"),
        ("hdfs:///wh/t", "hdfs://nn/wh/"),
        ("abfss://c/wh/t", "wasb://c@acc.blob.core.windows.net/wh"),
        ("wasb://c@acc.blob.core.windows.net/wh", "abfss://c/wh"),
        ("s3a://b/wh/t", "s3://b/wh"),
    ],
)
def test_what_may_be_inside_may_not_be_used(location: str, root: str) -> None:
    assert may_be_inside(location, root)
    assert is_inside(location, root) is location.startswith("s3")


@pytest.mark.parametrize(
    ("location", "root"),
    [
        ("hdfs:///wh2/t", "hdfs://nn/wh"),
        ("hdfs:///wh", "hdfs:///wh/t"),
        ("abfss://c@one.dfs.core.windows.net/wh", "abfss://c@two.dfs.core.windows.net/wh"),
        ("abfss://d/wh", "abfss://c@two.dfs.core.windows.net/wh"),
        ("s3://b/wh", "gs://b/wh"),
        ("nothing", "s3://b"),
    ],
)
def test_what_cannot_be_inside(location: str, root: str) -> None:
    assert not may_be_inside(location, root)


def test_a_backslash_may_be_a_slash_in_object_stores_only() -> None:
    assert place_of("s3://lake/t\\f") == place_of("s3://lake/t/f")
    assert folders_of("s3://lake/t\\f/g") == ["s3://lake/", "s3://lake/t/", "s3://lake/t/f/"]
    assert folder_around("s3://lake/t/u\\f/g") == "s3://lake/t/"
    assert place_of("/t\\f") != place_of("/t/f")
    assert flaw_of("/t\\f") is None


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3a://Lake/t/f", ("s3://lake", "t/f")),
        ("s3://lake//t/./x/../f/", ("s3://lake", "t/f")),
        ("s3://lake/a%2525b", ("s3://lake", "a%b")),
        ("file:/t/f", ("file://", "t/f")),
        ("file://host/t/f", ("file://host", "t/f")),
        ("/t/f", ("file://", "t/f")),
        ("t/f", ("://", "t/f")),
        ("", ("://", "")),
        ("s3://lake/%", ("s3://lake", "%")),
        ("s3://lake/t\\f", ("s3://lake", "t/f")),
        ("s3://lake/t%5Cf", ("s3://lake", "t/f")),
    ],
)
def test_loose_places(location: str, place: tuple[str, str]) -> None:
    assert loose_place_of(location) == place


_PIECES = [
    "",
    "a",
    "b",
    "_",
    ".",
    "..",
    "a b",
    "%2e%2e",
    "%2F",
    "a%",
    "\\..",
    "?",
    "#",
    "\n",
    "\x7f",
    "\ud800",
    "é",
    "c" * 600,
]


@given(
    st.sampled_from(
        [
            "",
            "/",
            "//",
            "file:",
            "file:/",
            "file://",
            "file:///",
            "s3:/",
            "s3://",
            "s3a://b/",
            "hdfs://",
            "memory:",
            "x",
        ]
    ),
    st.lists(st.sampled_from(_PIECES), max_size=5),
    st.lists(st.sampled_from(_PIECES), max_size=5),
)
def test_what_is_remembered_of_folders_changes_no_answer(
    start: str, outer: list[str], inner: list[str]
) -> None:
    root = start + "/".join(outer)
    location = start + "/".join([*outer, *inner])
    for one in (location, root):
        assert flaw_of(one) == locations._find_flaw(one)
    assert is_inside(location, root) == locations._lies_inside(location, root)
    assert is_inside(root, location) == locations._lies_inside(root, location)
