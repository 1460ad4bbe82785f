"""Local files that lie on other machines: a look at them may take for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.engine.model.ids import Location
from app.fileio import local
from app.fileio.files import is_near
from app.fileio.memory import MemoryFiles
from app.fileio.mounts import Mounts
from app.fileio.schemes import SchemedFiles
from app.fileio.storage_settings import StorageSettings

LINE = "36 35 {} /export {} rw,noatime master:1 shared:2 - {} host:/export rw,errors=continue\n"


def mounts(folder: Path, *kinds: tuple[str, str]) -> Mounts:
    """Return what is read of a listing of devices and types of file systems."""
    listing = folder / "mountinfo"
    listing.write_text(
        "".join(LINE.format(device, f"/{at}", kind) for at, (device, kind) in enumerate(kinds))
    )
    return Mounts(str(listing))


def device_of(path: Path) -> str:
    device = path.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def test_file_systems_of_the_network_are_told_from_disks(tmp_path: Path) -> None:
    kinds = "ext4 nfs4 overlay cifs tmpfs fuse.sshfs fuseblk nfsd fuse btrfs 9p fuse.fuse-overlayfs".split()

    found = mounts(tmp_path, *((f"0:{at}", kind) for at, kind in enumerate(kinds))).distant()

    assert {kinds[os.minor(device)] for device in found} == {"nfs4", "cifs", "fuse.sshfs", "fuse", "9p"}


def test_mounts_of_the_kernel_are_none_of_the_network(tmp_path: Path) -> None:
    """Nearly every machine has them, and would look at all files as if some were elsewhere."""
    listing = tmp_path / "mountinfo"
    lines = (
        ("/sys/fs/fuse/connections", "fusectl"),
        ("/proc/sys/fs/binfmt_misc", "autofs"),
        ("/net", "autofs"),
    )
    listing.write_text("".join(LINE.format(f"0:{at}", *line) for at, line in enumerate(lines)))

    assert Mounts(str(listing)).distant() == {os.makedev(0, 2)}


def test_a_mount_that_is_taken_away_while_it_is_not_used_stays_known(tmp_path: Path) -> None:
    now_s = [0.0]
    mounts(tmp_path, ("0:7", "autofs"), ("0:8", "nfs4"))
    seen = Mounts(str(tmp_path / "mountinfo"), lambda: now_s[0])
    both = seen.distant()

    mounts(tmp_path, ("0:7", "autofs"))
    now_s[0] += 60

    assert seen.distant() == both == {os.makedev(0, 7), os.makedev(0, 8)}


def test_a_mount_that_comes_later_is_seen(tmp_path: Path) -> None:
    now_s = [0.0]
    seen = Mounts(str(tmp_path / "mountinfo"), lambda: now_s[0])
    assert seen.distant() == frozenset()

    mounts(tmp_path, ("0:7", "nfs"))
    assert seen.distant() == frozenset()
    now_s[0] += 60
    assert seen.distant() == {os.makedev(0, 7)}


@pytest.mark.parametrize(("kind", "is_on_disk"), [("nfs", False), ("ext4", True)])
def test_only_what_was_seen_on_a_disk_is_near_where_there_are_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_on_disk: bool
) -> None:
    monkeypatch.setattr(local, "MOUNTS", mounts(tmp_path, (device_of(tmp_path), kind), ("0:9999", "nfs")))
    files = SchemedFiles(StorageSettings({}), 1.0, ())
    here, beside = (Location(f"file://{tmp_path}/{name}") for name in ("t/a", "t/b"))
    files.write_new(here, b"x")

    assert not is_near(files, here)
    assert files.exists(here)
    assert [is_near(files, each) for each in (here, beside)] == [is_on_disk] * 2
    assert not is_near(files, Location(f"file://{tmp_path}/u/a"))


def test_without_mounts_every_local_file_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MOUNTS", mounts(tmp_path, (device_of(tmp_path), "ext4")))
    files = SchemedFiles(StorageSettings({}), 1.0, ())

    assert is_near(files, Location(f"file://{tmp_path}/t/a"))
    assert is_near(files, Location("memory://wh/t/a"))
    assert is_near(MemoryFiles(), Location("memory://wh/t/a"))
    assert not is_near(files, Location("s3://bucket/t/a"))
