from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from app.engine.model.ids import Location
from app.errors import FilesUnavailable, InvalidLocation, InvalidSetting
from app.fileio.network.hdfs import cluster_of
from app.fileio.network.hdfs_calls import HdfsCalls
from app.fileio.network.hdfs_store import HdfsStore
from app.fileio.schemes import check_storage
from app.fileio.storage_settings import StorageSettings


@pytest.mark.parametrize(
    ("storage", "endpoints"),
    [
        ({"hdfs.endpoint": "http://nn:9870"}, ("http://nn:9870",)),
        ({"hdfs.endpoint": "nn"}, ("http://nn:9870",)),
        ({"hdfs.endpoint": "https://nn/"}, ("https://nn:9871",)),
        ({"hdfs.endpoint": "http://a:1, http://b:2"}, ("http://a:1", "http://b:2")),
        ({"hdfs.host": "nn", "hdfs.port": "8020"}, ("http://nn:9870",)),
    ],
)
def test_where_webhdfs_listens(storage: dict[str, str], endpoints: tuple[str, ...]) -> None:
    assert cluster_of(StorageSettings(storage)).endpoints == endpoints


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        ({}, "needs storage setting hdfs.endpoint"),
        ({"hdfs.endpoint": "ftp://nn"}, "like http://host:port"),
        ({"hdfs.endpoint": "http://nn/path"}, "like http://host:port"),
        ({"hdfs.endpoint": "http://nn?x"}, "like http://host:port"),
        ({"hdfs.endpoint": "http://nn:9870,"}, "like http://host:port"),
        ({"hdfs.endpoint": "http://user:hunter2@nn"}, "must not carry a user"),
        ({"hdfs.endpoint": "http://nn:port"}, "a port that is none"),
        ({"hdfs.host": "a/b"}, "hdfs.host must be"),
        ({"hdfs.host": "nn", "hdfs.port": "70000"}, "must be a port"),
        ({"hdfs.host": "nn", "hdfs.port": "1.5"}, "must be a port"),
        ({"hdfs.host": "nn", "hdfs.kerberos_ticket": "/tmp/krb5cc"}, "does not speak Kerberos"),
        ({"hdfs.host": "nn", "hdfs.user": "a", "hdfs.delegation-token": "b"}, "do not go together"),
    ],
)
def test_settings_that_make_no_sense_are_refused_when_they_are_given(
    storage: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidSetting, match=reason) as raised:
        check_storage("hdfs:///wh", storage)

    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("storage", "ours", "others"),
    [
        (
            {"hdfs.endpoint": "http://a:9870,http://b:9870"},
            ["hdfs:///x", "hdfs://a/x", "hdfs://B:8020/x"],
            ["hdfs://c/x", "hdfs://a:b/x", "hdfs://u@a/x"],
        ),
        (
            {"hdfs.endpoint": "http://gateway:14000", "hdfs.host": "Lake"},
            ["hdfs:///x", "hdfs://lake/x", "hdfs://lake:8020/x"],
            ["hdfs://gateway/x", "hdfs://lake2/x"],
        ),
        ({"hdfs.host": "nn", "hdfs.port": "8020"}, ["hdfs://nn/x", "hdfs://nn:8020/x"], ["hdfs://nn:9000/x"]),
    ],
)
def test_a_warehouse_has_one_cluster(storage: dict[str, str], ours: list[str], others: list[str]) -> None:
    for location in ours:
        check_storage(location, storage)
    for location in others:
        with pytest.raises(InvalidLocation, match="another HDFS"):
            check_storage(location, storage)


class EndlessFile:
    """A cluster with one file of ten bytes, which a data node goes on to send for ever."""

    def __init__(self) -> None:
        self.sent_bytes = 0

    def ask(self, *_: str, **__: str) -> dict[str, Any]:
        return {"FileStatus": {"type": "FILE", "length": 10, "modificationTime": 0}}

    @contextmanager
    def opened(self, *_: str, **__: str) -> Iterator[tuple[int | None, Iterator[bytes]]]:
        yield None, self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        while True:
            self.sent_bytes += 4
            assert self.sent_bytes < 1000, "it would fill the memory"
            yield b"1234"


@pytest.mark.parametrize(
    "read",
    [lambda store, at: store.read(at), lambda store, at: store.read_tail(at, 5)],
    ids=["whole", "tail"],
)
def test_a_file_that_does_not_end_is_not_read_to_its_end(
    read: Callable[[HdfsStore, Location], object],
) -> None:
    cluster = EndlessFile()
    store = HdfsStore(cast("HdfsCalls", cluster), lambda _location: "t/f")

    with pytest.raises(FilesUnavailable, match="bytes came of"):
        read(store, Location("hdfs://nn/t/f"))

    assert cluster.sent_bytes < 20
