"""What a tree of files promises, on local disk, in HDFS and on an S3-compatible server."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles
from app.fileio.network import s3_conditional
from app.fileio.network.s3 import S3Tree
from app.fileio.network.s3_conditional import ConditionalPuts, ReplyLost
from app.fileio.schemes import SchemedFiles, files_for
from app.fileio.storage_settings import StorageSettings
from app.fileio.trees import FileTree, FolderEntry, check_tree_scheme, tree_of
from app.tree_errors import TreeRefusal
from tests.servers.s3 import S3Server
from tests.servers.webhdfs import HdfsPlace

ROOT = Path(__file__).parents[2]
_BUCKET = "trees"
Place = tuple[SchemedFiles, Location]


@pytest.fixture(params=["local", "hdfs", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        files = files_for({}, local_roots=(f"file://{tmp_path}",))
        assert isinstance(files, SchemedFiles)
        return files, Location(f"file://{tmp_path}/root")
    if request.param == "hdfs":
        hdfs: HdfsPlace = request.getfixturevalue("hdfs")
        files = files_for(hdfs.storage)
        assert isinstance(files, SchemedFiles)
        return files, Location(hdfs.new_root())
    server: S3Server = request.getfixturevalue("s3_server")
    server.create_bucket(_BUCKET)
    files = files_for(server.storage)
    assert isinstance(files, SchemedFiles)
    return files, Location(f"s3://{_BUCKET}/{uuid.uuid4()}")


def test_a_file_is_created_once(place: Place) -> None:
    files, root = place
    files.create_folder(root)
    location = Location(f"{root}/v1.metadata.json")

    files.write_once(location, b"first")
    with pytest.raises(FileExists):
        files.write_once(location, b"second")

    assert files.read(location) == b"first"
    assert files.list_folder(root) == [FolderEntry("v1.metadata.json", is_folder=False)]


def test_of_many_writers_one_creates_a_file(place: Place) -> None:
    files, root = place
    files.create_folder(root)
    for round_number in range(5):
        location, together = Location(f"{root}/v{round_number}"), threading.Barrier(8)

        def write(
            number: int, location: Location = location, together: threading.Barrier = together
        ) -> int | None:
            together.wait()
            try:
                files.write_once(location, b"%d" % number)
            except FileExists:
                return None
            return number

        with ThreadPoolExecutor(8) as pool:
            won = [number for number in pool.map(write, range(8)) if number is not None]

        assert [files.read(location)] == [b"%d" % number for number in won]


def test_replacing_needs_no_file_and_takes_one(place: Place) -> None:
    files, root = place
    files.create_folder(root)
    location = Location(f"{root}/version-hint.text")

    files.replace(location, b"1")
    files.replace(location, b"2")

    assert files.read(location) == b"2"
    assert [entry.name for entry in files.list_folder(root) or ()] == ["version-hint.text"]


def test_folders_are_made_listed_and_removed(place: Place) -> None:
    files, root = place
    assert files.list_folder(root) is None
    files.create_folder(Location(f"{root}/b/c"))
    files.create_folder(Location(f"{root}/a"))
    files.create_folder(Location(f"{root}/a"))
    files.write_once(Location(f"{root}/a/file"), b"x")

    assert files.list_folder(root) == [FolderEntry("a", is_folder=True), FolderEntry("b", is_folder=True)]
    assert not files.remove_folder(Location(f"{root}/a"))
    assert files.remove_folder(Location(f"{root}/b/c"))
    assert files.remove_folder(Location(f"{root}/b"))
    assert files.read(Location(f"{root}/a/file")) == b"x"
    assert [entry.name for entry in files.list_folder(root) or ()] == ["a"]


def test_local_files_need_their_folder(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        LocalFiles().write_once(Location(f"file://{tmp_path}/nothing/v1"), b"x")
    assert not (tmp_path / "nothing").exists()


def test_a_folder_that_leads_outside_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    files = LocalFiles([f"file://{tmp_path}/root"])
    inside = f"file://{tmp_path}/root/link"

    with pytest.raises(InvalidLocation):
        files.write_once(Location(f"{inside}/v1"), b"x")
    with pytest.raises(InvalidLocation):
        files.replace(Location(f"{inside}/v1"), b"x")
    with pytest.raises(InvalidLocation):
        files.create_folder(Location(f"{inside}/deeper"))
    with pytest.raises(InvalidLocation):
        files.list_folder(Location(inside))
    assert list((tmp_path / "outside").iterdir()) == []
    assert files.list_folder(Location(f"file://{tmp_path}/root")) == []


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (PermissionError(1, "Operation not permitted"), TreeRefusal),
        (OSError(errno.ENOSPC, "No space left on device"), FilesUnavailable),
        (OSError(errno.EIO, "Input/output error"), CommitStateUnknown),
    ],
)
def test_a_link_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: OSError, expected: type[Exception]
) -> None:
    def link(*_arguments: object, **_options: object) -> None:
        raise failure

    monkeypatch.setattr(os, "link", link)

    with pytest.raises(expected):
        LocalFiles().write_once(Location(f"file://{tmp_path}/v1"), b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_link_without_an_answer_may_have_been_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", link)

    with pytest.raises(CommitStateUnknown, match="Cannot tell whether"):
        LocalFiles().write_once(Location(f"file://{tmp_path}/v1"), b"x")
    assert [file.name for file in tmp_path.iterdir()] == ["v1"]


def test_folders_are_listed_where_there_is_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    (tmp_path / "v1").write_bytes(b"x")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).startswith("/proc"):
            raise FileNotFoundError(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)

    found = LocalFiles().list_folder(Location(f"file://{tmp_path}"))
    assert found == [FolderEntry("v1", is_folder=False)]


def test_systems_that_lack_an_error_of_linux_have_local_files() -> None:
    """As macOS."""
    program = "import errno; vars(errno).pop('EREMOTEIO', None); import app.fileio.local"

    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_only_stores_that_can_promise_it_are_trees(tmp_path: Path) -> None:
    for location in ("gs://bucket/x", "abfss://c@a/x", "memory://x"):
        with pytest.raises(TreeRefusal, match="only if it is absent"):
            check_tree_scheme(location)
    with pytest.raises(TreeRefusal):
        tree_of(MemoryFiles(), f"file://{tmp_path}")
    assert isinstance(tree_of(LocalFiles(), f"file://{tmp_path}"), FileTree)


# ----------------------------------------------------------------------------------- stores that misbehave


@contextmanager
def store_that_answers(*statuses: int, deletion: int = 204, body: bytes = b"") -> Iterator[ConditionalPuts]:
    """Run a server that answers PUT with these statuses, one after the other; 0 breaks the connection."""
    left = list(statuses)

    class Answers(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            status = left.pop(0)
            if status:
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            else:
                self.close_connection = True

        def do_DELETE(self) -> None:
            self.send_response(deletion)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings = {
        "s3.endpoint": f"http://127.0.0.1:{server.server_port}",
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret-of-it",
    }
    try:
        yield ConditionalPuts(StorageSettings(settings), "us-east-1")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_store_that_ignores_the_condition_takes_no_commits() -> None:
    with store_that_answers(200, 200) as puts:
        for _ in range(2):
            with pytest.raises(TreeRefusal, match="both would win"):
                puts.check("bucket", "t/metadata/")


def test_a_tree_says_at_once_that_it_keeps_its_promise_and_leaves_nothing(place: Place) -> None:
    files, root = place
    files.create_folder(root)

    files.check_writes_once(root)

    assert files.list_folder(root) == []


def test_a_store_that_obeys_is_asked_once() -> None:
    with store_that_answers(200, 412) as puts:
        puts.check("bucket", "t/metadata/")
        puts.check("bucket", "u/metadata/")


def test_a_store_that_is_asked_twice_by_a_proxy_obeys_all_the_same() -> None:
    with store_that_answers(412, 412) as puts:
        puts.check("bucket", "t/metadata/")


def test_a_store_that_lets_nothing_be_deleted_takes_commits(caplog: pytest.LogCaptureFixture) -> None:
    with store_that_answers(200, 412, deletion=403) as puts:
        puts.check("bucket", "t/metadata/")
        puts.check("bucket", "u/metadata/")

    (line,) = [record.getMessage() for record in caplog.records if record.name == s3_conditional.__name__]
    assert "Cannot delete s3://bucket/t/metadata/.icetower-probe-" in line


def test_a_bucket_that_does_not_answer_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def put(_puts: ConditionalPuts, bucket: str, _key: str, content: bytes) -> bool:
        if bucket == "slow":
            asked.set()
            assert may_answer.wait(30)
        return content == b"1"

    monkeypatch.setattr(ConditionalPuts, "put", put)
    with store_that_answers() as puts, ThreadPoolExecutor(2) as pool:
        slow = pool.submit(puts.check, "slow", "t/")
        assert asked.wait(30)
        pool.submit(puts.check, "quick", "t/").result(timeout=20)
        assert not slow.done()
        may_answer.set()
        slow.result(timeout=20)


def test_a_conflict_at_the_same_moment_is_tried_again() -> None:
    with store_that_answers(409, 409, 412) as puts:
        assert not puts.put("bucket", "v2", b"x")
    with store_that_answers(409, 200) as puts:
        assert puts.put("bucket", "v2", b"x")


def test_no_secret_that_a_store_repeats_is_shown() -> None:
    """AWS repeats a session token that it does not take, and a cut one would still be most of it."""
    body = b"<Code>InvalidToken</Code>" + b"." * 360 + b"<Token>secret-of-it</Token>"
    with store_that_answers(403, body=body) as puts, pytest.raises(FilesUnavailable) as refused:
        puts.put("bucket", "v2", b"x")
    with store_that_answers(500, body=body) as puts, pytest.raises(ReplyLost) as lost:
        puts.put("bucket", "v2", b"x")

    assert "InvalidToken" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "secret" not in str(lost.value)


@pytest.mark.parametrize("status", [0, 500, 502])
def test_a_reply_that_does_not_say_what_was_done_is_none(status: int) -> None:
    with store_that_answers(status) as puts, pytest.raises(ReplyLost):
        puts.put("bucket", "v2", b"x")


def test_a_proxy_that_is_unavailable_does_not_say_what_was_done() -> None:
    with store_that_answers(503) as puts, pytest.raises(ReplyLost):
        puts.put("bucket", "v2", b"x")
    slow_down = b"<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>"
    with store_that_answers(503, body=slow_down) as puts, pytest.raises(Throttled):
        puts.put("bucket", "v2", b"x")


@pytest.mark.s3
@pytest.mark.parametrize("failure", [FilesUnavailable("no answer"), Throttled("slow down")])
def test_a_lost_reply_that_cannot_be_looked_up_stays_unknown(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, failure: IcetowerError
) -> None:
    s3_server.create_bucket(_BUCKET)
    files, root = files_for(s3_server.storage), f"s3://{_BUCKET}/{uuid.uuid4()}"
    assert isinstance(files, SchemedFiles)
    files.check_writes_once(Location(root))

    def put(*_arguments: object) -> bool:
        raise ReplyLost("the connection broke")

    def read(*_arguments: object) -> bytes:
        raise failure

    monkeypatch.setattr(ConditionalPuts, "put", put)
    monkeypatch.setattr(S3Tree, "read", read)

    with pytest.raises(CommitStateUnknown, match="it cannot be read"):
        files.write_once(Location(f"{root}/v1"), b"ours")


@pytest.mark.s3
def test_a_lost_reply_is_looked_up(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    s3_server.create_bucket(_BUCKET)
    files, root = files_for(s3_server.storage), f"s3://{_BUCKET}/{uuid.uuid4()}"
    assert isinstance(files, SchemedFiles)
    real = ConditionalPuts.put
    is_sent = {"landed": True, "other": True, "nothing": False}

    def put(self: ConditionalPuts, bucket: str, key: str, content: bytes) -> bool:
        if "probe" in key:
            return real(self, bucket, key, content)
        name = key.rpartition("/")[2]
        if is_sent[name]:
            real(self, bucket, key, b"of another writer" if name == "other" else content)
        raise ReplyLost("the connection broke")

    monkeypatch.setattr(ConditionalPuts, "put", put)

    files.write_once(Location(f"{root}/landed"), b"ours")
    with pytest.raises(FileExists):
        files.write_once(Location(f"{root}/other"), b"ours")
    with pytest.raises(CommitStateUnknown):
        files.write_once(Location(f"{root}/nothing"), b"ours")


def test_without_keys_nothing_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(TreeRefusal, match=r"s3\.access-key-id"):
        ConditionalPuts(StorageSettings({}), "us-east-1").check("bucket", "")


@pytest.mark.parametrize("setting", [{"s3.anonymous": "true"}, {"s3.role-arn": "arn:aws:iam::1:role/reader"}])
def test_who_reads_as_somebody_else_does_not_commit_with_the_keys_of_the_environment(
    setting: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of the server")

    with pytest.raises(TreeRefusal, match=r"without s3\.anonymous and s3\.role-arn"):
        ConditionalPuts(StorageSettings(setting), "us-east-1").check("bucket", "")
