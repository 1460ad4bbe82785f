"""Files are written through to the disk with what the operating system has for it."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from app.fileio import syncs
from app.fileio.syncs import sync

FULL_SYNC = 51
"""As macOS has it."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return which calls are made, in their order."""
    calls: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _descriptor: calls.append("fsync"))
    return calls


def sync_file(path: Path) -> None:
    with path.open("wb") as file:
        sync(file.fileno())


def test_linux_has_one_kind_of_sync(tmp_path: Path, asked: list[str]) -> None:
    sync_file(tmp_path / "file")

    assert asked == ["fsync"]


@pytest.mark.parametrize(
    ("failure", "calls"), [(None, ["full"]), (OSError(errno.ENOTSUP, "Not supported"), ["full", "fsync"])]
)
def test_macos_is_asked_to_reach_the_disk_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[str],
    failure: OSError | None,
    calls: list[str],
) -> None:
    def control(_descriptor: int, command: int) -> int:
        assert command == FULL_SYNC
        asked.append("full")
        if failure is not None:
            raise failure
        return 0

    monkeypatch.setattr(syncs, "_FULL_SYNC", FULL_SYNC)
    monkeypatch.setattr(fcntl, "fcntl", control)

    sync_file(tmp_path / "file")

    assert asked == calls
