from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Icetower


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sql", "sqlite:///absent.db"), "There is no SQLite database at absent.db"),
        (("sql", "env:NO_SUCH_VARIABLE"), "environment variable NO_SUCH_VARIABLE is not set"),
        (("rest", "http://127.0.0.1:1"), "Cannot reach a catalog at http://127.0.0.1:1"),
        (("rest", "http://127.0.0.1:1", "-p", "user=x"), "user cannot be used: token, credential,"),
        (("rest", "http://127.0.0.1:1", "-p", "scope=x"), "scope without credential"),
        (("rest", "http://127.0.0.1:1", "-p", "credential=id:"), "credential has no secret"),
        (("rest", "http://127.0.0.1:1", "-p", "credential=env:NOT_THERE"), "variable NOT_THERE is not set"),
        (
            ("rest", "http://127.0.0.1:1", "-p", "credential=a:b", "-p", "token=t"),
            "token and credential both say who calls",
        ),
        (
            ("rest", "http://127.0.0.1:1", "-p", "token=t", "-p", "header.authorization=Basic x"),
            "token and header.authorization both say who calls",
        ),
        (
            ("rest", "http://a:b@127.0.0.1:1", "-p", "credential=a:b"),
            "credential and a user in the address both say who calls",
        ),
        (
            ("rest", "http://127.0.0.1:1", "-p", "credential=a:b", "-p", "oauth2-server-uri=ftp://x"),
            "Cannot reach a catalog at ftp://x",
        ),
        (("folder", "nothing", "--regex", "("), "is not a regular expression"),
        (("folder", "nothing", "--map", "x"), "'x' is not <old>=<new>"),
        (("folder", "nothing", "--map", "a/=b"), "'a/=b': both end with a slash, or neither"),
        (
            ("folder", "nothing", "--mode", "keep"),
            "Invalid value for '--mode': 'keep' is not one of adopt, fence, look-on",
        ),
        (("folder", "nothing", "--rename", "a=b..c"), "'b..c' has an empty name"),
        (("folder", "nothing", "--rename", "a=b", "--separator", ""), "the separator is empty"),
        (("folder", ""), "the name of the folder is empty"),
        (("folder", "loop"), "loop cannot be "),
        (("folder", "a.metadata.json"), "a.metadata.json is a file, and a folder is meant"),
        (("parquet", "nothing", "a.t"), "There are no files in"),
        (("parquet", "", "a.t"), "the name of the folder is empty"),
        (("parquet", "loop", "a.t"), "loop cannot be "),
        (("parquet", "a.metadata.json", "a.t"), "a.metadata.json is a file, and a folder is meant"),
        (("parquet", "@nothing", "a.t"), "nothing cannot be read"),
        (("parquet", "x", "a.t", "--partition-type", "a=strange"), "Cannot parse type string"),
    ],
)
def test_what_cannot_be_understood_is_refused(
    icetower: Icetower, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "a.metadata.json").touch()

    done = icetower("import", *arguments)

    assert done.status in {1, 2}
    assert message in " ".join(done.err.replace("│", " ").split())
