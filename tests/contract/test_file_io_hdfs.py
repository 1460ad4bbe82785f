"""HDFS where it misbehaves: answers that are lost, nodes that are away, redirects that lead elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from app.engine.model.ids import Location
from app.errors import (
    CommitStateUnknown,
    FileExists,
    FileMissing,
    FilesUnavailable,
    IcetowerError,
    InvalidLocation,
    Throttled,
)
from app.fileio.schemes import SchemedFiles, files_for
from tests.e2e.patience import wait_until
from tests.servers.webhdfs import FakeHdfs, Node, Refused

_ROOT = "hdfs://127.0.0.1:8020/wh"
_VERSION = Location(f"{_ROOT}/t/v2.metadata.json")
_UUID = Location(f"{_ROOT}/t/00000-0b5a9b5e-0000-4000-8000-00000000cafe.metadata.json")
_TOKEN = "HAAEaWNldG93ZXI"
_CALLS: dict[str, Callable[[SchemedFiles], object]] = {
    "read": lambda files: files.read(_VERSION),
    "write": lambda files: files.write_new(_UUID, b"content"),
    "create": lambda files: files.write_once(_VERSION, b"content"),
    "replace": lambda files: files.replace(_VERSION, b"content"),
    "delete": lambda files: files.delete(_VERSION),
    "exists": lambda files: files.exists(_VERSION),
    "list": lambda files: list(files.list_files(Location(_ROOT))),
    "make a folder": lambda files: files.create_folder(Location(f"{_ROOT}/u")),
}


def opened(hdfs: FakeHdfs, **settings: str) -> SchemedFiles:
    files = files_for({"hdfs.endpoint": hdfs.place.endpoint, "hdfs.request-timeout": "5", **settings})
    assert isinstance(files, SchemedFiles)
    files.create_folder(Location(f"{_ROOT}/t"))
    return files


def names(hdfs: FakeHdfs) -> list[str]:
    """Return what the folder of the versions holds, temporary files too."""
    return sorted(hdfs.tree.children("/wh/t"))


def on(operation: str, fault: Callable[[], None], *, after: bool) -> Callable[[str, str, bool], None]:
    def intervene(asked: str, _path: str, is_done: bool) -> None:
        if asked == operation and is_done == after:
            fault()

    return intervene


def broken() -> None:
    raise ConnectionError


def refusal(status: int, kind: str, message: str = "said the node") -> Callable[[], None]:
    def fault() -> None:
        raise Refused(status, kind, message)

    return fault


def once(fault: Callable[[], None]) -> Callable[[], None]:
    left = [fault]

    def first() -> None:
        if left:
            left.pop()()

    return first


# ----------------------------------------------------------------------- the rename of a commit, and its answer


def test_a_rename_whose_answer_is_lost_is_looked_up(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)
    fake_hdfs.intervene = on("RENAME", broken, after=True)

    files.write_once(_VERSION, b"ours")

    assert files.read(_VERSION) == b"ours"
    assert names(fake_hdfs) == ["v2.metadata.json"]


def test_a_rename_that_was_not_done_cannot_be_done_later(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)
    fake_hdfs.intervene = on("RENAME", broken, after=False)

    with pytest.raises(FilesUnavailable):
        files.write_once(_VERSION, b"ours")

    assert names(fake_hdfs) == []


def test_a_lost_answer_where_another_writer_was_first(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)

    def other_is_first() -> None:
        fake_hdfs.tree.nodes["/wh/t/v2.metadata.json"] = Node(b"theirs")
        raise ConnectionError

    fake_hdfs.intervene = on("RENAME", other_is_first, after=False)

    with pytest.raises(FileExists):
        files.write_once(_VERSION, b"ours")

    assert files.read(_VERSION) == b"theirs"
    assert names(fake_hdfs) == ["v2.metadata.json"]


@pytest.mark.parametrize("is_done", [False, True])
def test_a_name_node_that_stays_away_leaves_the_outcome_unknown(fake_hdfs: FakeHdfs, is_done: bool) -> None:
    files = opened(fake_hdfs)

    def goes_away() -> None:
        fake_hdfs.intervene = lambda *_: broken()
        raise ConnectionError

    fake_hdfs.intervene = on("RENAME", goes_away, after=is_done)

    with pytest.raises(CommitStateUnknown):
        files.write_once(_VERSION, b"ours")

    assert ("v2.metadata.json" in names(fake_hdfs)) == is_done


def test_a_gateway_that_renames_to_another_name_has_not_created_the_file(fake_hdfs: FakeHdfs) -> None:
    """HttpFS does so with blanks at the end of a name."""
    files = opened(fake_hdfs)
    fake_hdfs.knows_options = False

    def is_renamed_again() -> None:
        fake_hdfs.tree.rename("/wh/t/v2.metadata.json", "/wh/t/another", "NONE")

    fake_hdfs.intervene = on("RENAME", is_renamed_again, after=True)

    with pytest.raises(CommitStateUnknown, match="it is not there"):
        files.write_once(_VERSION, b"ours")


@pytest.mark.parametrize("lost", ["FileStatus", "connection"])
def test_a_gateway_that_goes_away_after_its_rename_leaves_the_outcome_unknown(
    fake_hdfs: FakeHdfs, lost: str
) -> None:
    files = opened(fake_hdfs)
    fake_hdfs.knows_options = False
    fault = refusal(404, "") if lost == "FileStatus" else broken
    fake_hdfs.intervene = on("GETFILESTATUS", fault, after=False)

    with pytest.raises(CommitStateUnknown):
        files.write_once(_VERSION, b"ours")

    assert names(fake_hdfs) == ["v2.metadata.json"]


@pytest.mark.parametrize("is_done", [False, True])
def test_answers_that_are_not_webhdfs_s_leave_the_outcome_unknown(fake_hdfs: FakeHdfs, is_done: bool) -> None:
    files = opened(fake_hdfs)

    def something_else_answers() -> None:
        fake_hdfs.intervene = lambda *_: refusal(200, "")()
        raise ConnectionError

    fake_hdfs.intervene = on("RENAME", something_else_answers, after=is_done)

    with pytest.raises(CommitStateUnknown):
        files.write_once(_VERSION, b"ours")


def test_a_new_file_is_written_or_not_whatever_is_known_of_its_rename(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)

    def goes_away() -> None:
        fake_hdfs.intervene = lambda *_: broken()
        raise ConnectionError

    fake_hdfs.intervene = on("RENAME", goes_away, after=False)

    with pytest.raises(FilesUnavailable):
        files.write_new(_VERSION, b"ours")


def test_a_rename_that_is_never_answered_ends_in_time_and_is_unknown(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)
    hangs = files_for(
        {"hdfs.endpoint": fake_hdfs.place.endpoint, "hdfs.request-timeout": "60"}, answer_s=0.05
    )
    assert isinstance(hangs, SchemedFiles)
    answer = threading.Event()
    fake_hdfs.intervene = on("RENAME", lambda: assert_true(answer.wait()), after=False)

    with pytest.raises(CommitStateUnknown, match="no whole answer after"):
        hangs.write_once(_VERSION, b"ours")

    answer.set()
    wait_until(lambda: files.exists(_VERSION))
    assert files.read(_VERSION) == b"ours"


def assert_true(claim: bool) -> None:
    assert claim


def test_a_name_node_that_starts_again_in_between_has_renamed_or_not(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)
    fault = once(refusal(403, "SafeModeException", "Name node is in safe mode"))
    fake_hdfs.intervene = on("RENAME", fault, after=False)

    with pytest.raises(FilesUnavailable, match="safe mode"):
        files.write_once(_VERSION, b"ours")
    files.write_once(_VERSION, b"again")

    assert files.read(_VERSION) == b"again"
    assert names(fake_hdfs) == ["v2.metadata.json"]


@pytest.mark.parametrize("knows_options", [True, False], ids=["name node", "gateway"])
def test_a_folder_that_has_the_name_is_left_as_it_was(fake_hdfs: FakeHdfs, knows_options: bool) -> None:
    """The older rename moves a file into a folder that has the name, and says that all is well."""
    files = opened(fake_hdfs)
    fake_hdfs.knows_options = knows_options
    files.create_folder(Location(_VERSION))

    with pytest.raises(FileExists):
        files.write_once(_VERSION, b"ours")

    assert names(fake_hdfs) == ["v2.metadata.json"]
    assert fake_hdfs.tree.children("/wh/t/v2.metadata.json") == {}


def test_a_gateway_without_options_creates_once_and_replaces(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)
    fake_hdfs.knows_options = False

    files.write_once(_VERSION, b"first")
    with pytest.raises(FileExists):
        files.write_once(_VERSION, b"second")
    assert files.read(_VERSION) == b"first"
    files.replace(_VERSION, b"third")

    assert files.read(_VERSION) == b"third"
    assert names(fake_hdfs) == ["v2.metadata.json"]


def test_a_folder_that_goes_while_a_version_is_written(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)

    def is_dropped() -> None:
        for path in [path for path in fake_hdfs.tree.nodes if path.startswith("/wh/t")]:
            del fake_hdfs.tree.nodes[path]

    fake_hdfs.intervene = on("RENAME", is_dropped, after=False)

    with pytest.raises(FileMissing):
        files.write_once(_VERSION, b"ours")
    with pytest.raises(FileMissing):
        files.write_once(_VERSION, b"ours")
    assert "/wh/t" not in fake_hdfs.tree.nodes


@pytest.mark.parametrize("call", [_CALLS["write"], _CALLS["create"], _CALLS["replace"]])
def test_a_data_node_that_fails_leaves_no_part_of_a_file(
    fake_hdfs: FakeHdfs, call: Callable[[SchemedFiles], object]
) -> None:
    files = opened(fake_hdfs)

    def half_written(asked: str, path: str, is_done: bool) -> None:
        if asked == "data CREATE" and not is_done:
            fake_hdfs.tree.nodes[path] = Node(b"con")
            raise Refused(403, "IOException", "could only be written to 0 of the 1 minReplication nodes")

    fake_hdfs.intervene = half_written

    with pytest.raises(FilesUnavailable, match="could only be written to 0"):
        call(files)
    assert names(fake_hdfs) == []


# --------------------------------------------------------------------------------- which node, and what it says


def test_the_name_node_that_is_active_is_found_and_kept() -> None:
    standby, active = FakeHdfs(), FakeHdfs()
    for node in (standby, active):
        node.start()
    standby.intervene = lambda *_: refusal(403, "StandbyException", "not active")()
    both = f"{standby.place.endpoint}, {active.place.endpoint}"
    files = opened(active, **{"hdfs.endpoint": both})
    asked = len(standby.asked)

    files.write_once(_VERSION, b"ours")
    standby.intervene, active.intervene = (
        lambda *_: None,
        lambda *_: refusal(403, "StandbyException", "not active")(),
    )

    assert len(standby.asked) == asked
    assert not files.exists(_VERSION)
    assert f"GETFILESTATUS /wh/t/{_VERSION.rpartition('/')[2]}" in standby.asked
    for node in (standby, active):
        node.stop()


def test_a_connection_that_broke_is_made_again_for_what_may_be_repeated(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)
    fake_hdfs.intervene = on("GETFILESTATUS", once(broken), after=False)

    assert not files.exists(_VERSION)


def test_a_data_node_that_is_away_is_left_out(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs)
    fake_hdfs.redirect = "http://127.0.0.1:1/webhdfs/v1/wh/t?op=CREATE"

    with pytest.raises(FilesUnavailable):
        files.write_once(_VERSION, b"ours")

    assert fake_hdfs.asked.count(next(each for each in fake_hdfs.asked if each.startswith("CREATE"))) == 2
    assert fake_hdfs.excluded == ["127.0.0.1:1"]


@pytest.mark.parametrize(
    "target",
    [
        "",
        "https://127.0.0.1:{port}/webhdfs/v1/x",
        "ftp://127.0.0.1/webhdfs/v1/x",
        "http://127.0.0.1:{port}/latest/meta-data",
        "http://user:pass@127.0.0.1:{port}/webhdfs/v1/x",
        "/webhdfs/v1/x",
        "http:///webhdfs/v1/x",
    ],
)
def test_a_redirect_elsewhere_is_not_followed(fake_hdfs: FakeHdfs, target: str) -> None:
    files = opened(fake_hdfs)
    files.write_new(_UUID, b"content")
    fake_hdfs.redirect = target.format(port=fake_hdfs.servers[1].server_port) or "nowhere"
    asked = len(fake_hdfs.asked)

    with pytest.raises(FilesUnavailable, match="not answered with a redirect to a data node"):
        files.read(_UUID)
    assert not any(each.startswith("data") for each in fake_hdfs.asked[asked:])


@pytest.mark.parametrize(
    ("operation", "call"),
    [("OPEN", "read"), ("CREATE", "write"), ("CREATE", "create"), ("CREATE", "replace")],
)
def test_a_data_node_that_sends_us_on_has_done_nothing(
    fake_hdfs: FakeHdfs, operation: str, call: str
) -> None:
    files = opened(fake_hdfs)
    files.write_once(_VERSION, b"first")
    if call == "create":
        files.delete(_VERSION)
    before = names(fake_hdfs)
    fake_hdfs.intervene = on(f"data {operation}", refusal(307, ""), after=False)

    with pytest.raises(FilesUnavailable, match="the data node sends us elsewhere"):
        _CALLS[call](files)
    assert names(fake_hdfs) == before


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS.keys())
@pytest.mark.parametrize(
    ("fault", "expected", "reason"),
    [
        (
            refusal(403, "AccessControlException", "Permission denied: user=eve"),
            FilesUnavailable,
            "refuses access",
        ),
        (refusal(401, "", ""), FilesUnavailable, "asks for Kerberos"),
        (refusal(403, "SafeModeException", "Name node is in safe mode"), FilesUnavailable, "safe mode"),
        (refusal(403, "StandbyException", "not active"), FilesUnavailable, "not active"),
        (refusal(503, "", ""), Throttled, "slow down"),
        (refusal(500, "", ""), FilesUnavailable, "HTTP status 500"),
        (refusal(404, "", ""), FilesUnavailable, "not WebHDFS's"),
    ],
    ids=["access", "401", "safe mode", "standby", "503", "500", "404 of something else"],
)
def test_what_a_name_node_refuses_is_said(
    fake_hdfs: FakeHdfs,
    call: Callable[[SchemedFiles], object],
    fault: Callable[[], None],
    expected: type[IcetowerError],
    reason: str,
) -> None:
    files = opened(fake_hdfs)
    fake_hdfs.intervene = lambda *_: fault()

    with pytest.raises(expected, match=reason):
        call(files)


def test_a_token_goes_to_name_nodes_and_is_never_shown(fake_hdfs: FakeHdfs) -> None:
    files = opened(fake_hdfs, **{"hdfs.delegation-token": _TOKEN})
    files.write_new(_UUID, b"content")
    fake_hdfs.intervene = lambda *_: refusal(403, "InvalidToken", f"token {_TOKEN} is expired")()

    with pytest.raises(FilesUnavailable, match=r"refuses access .*\*\*\* is expired") as raised:
        files.read(_UUID)

    assert _TOKEN not in str(raised.value)
    assert {query.get("delegation") for query in fake_hdfs.queries} == {_TOKEN}
    assert not any("user.name" in query for query in fake_hdfs.queries)


@pytest.mark.parametrize(
    "location",
    [
        "hdfs://other:8020/wh/t/x",
        "hdfs://127.0.0.1:x/wh/t/x",
        "hdfs://user@127.0.0.1/wh/t/x",
        "hdfs://127.0.0.1/wh/../x",
        "hdfs://127.0.0.1/.reserved/.inodes/16387",
        "hdfs://127.0.0.1/wh/a:b",
        "hdfs://127.0.0.1/wh/t/",
        "hdfs://127.0.0.1/",
        "hdfs:/wh/t/x",
    ],
)
def test_what_hdfs_cannot_name_is_refused_before_it_is_asked(fake_hdfs: FakeHdfs, location: str) -> None:
    files = opened(fake_hdfs)
    asked = len(fake_hdfs.asked)

    for call in (files.read, files.delete, files.exists):
        with pytest.raises(InvalidLocation):
            call(Location(location))
    with pytest.raises(InvalidLocation):
        files.write_once(Location(location), b"")
    assert len(fake_hdfs.asked) == asked


def test_a_folder_is_deleted_as_a_folder_only(fake_hdfs: FakeHdfs) -> None:
    """WebHDFS has one call for both, which takes an empty folder for a file."""
    files = opened(fake_hdfs)
    files.create_folder(Location(f"{_ROOT}/empty"))
    files.write_new(Location(f"{_ROOT}/file"), b"x")

    files.delete(Location(f"{_ROOT}/empty"))
    assert files.list_folder(Location(f"{_ROOT}/empty")) == []
    assert not files.delete_empty_folder(Location(f"{_ROOT}/file"))
    assert not files.delete_empty_folder(Location(_ROOT))
    assert files.delete_empty_folder(Location(f"{_ROOT}/empty"))
    assert files.list_folder(Location(f"{_ROOT}/empty")) is None
    assert files.read(Location(f"{_ROOT}/file")) == b"x"


def test_a_listing_that_goes_round_is_told(fake_hdfs: FakeHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    files, page = opened(fake_hdfs), fake_hdfs._page
    for number in range(150):
        fake_hdfs.tree.nodes[f"/wh/t/{number}"] = Node(b"")
    # It begins with the first names each time, and says that there are more.
    monkeypatch.setattr(fake_hdfs, "_page", lambda path, _after: page(path, ""))

    with pytest.raises(FilesUnavailable, match="the listing goes round"):
        list(files.list_files(Location(_ROOT)))
