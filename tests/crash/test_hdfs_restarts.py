"""A real name node that is restarted while versions are created: each was created, or was not, or is not known."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, FilesUnavailable, Throttled
from app.fileio.schemes import SchemedFiles, files_for
from tests.e2e.patience import wait_until
from tests.servers.webhdfs import FOLDER, HdfsPlace

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(FOLDER not in os.environ, reason=f"needs an HDFS: scripts/hdfs sets {FOLDER}"),
]


def test_what_was_created_outlives_a_restart_and_what_was_refused_is_not_there(hdfs: HdfsPlace) -> None:
    folder = Path(os.environ[FOLDER])
    # Two stores: the circuit of the first may be open when the restart is over.
    files, later = files_for(hdfs.storage), files_for({**hdfs.storage, "hdfs.request-timeout": "20"})
    assert isinstance(files, SchemedFiles)
    assert isinstance(later, SchemedFiles)
    root = Location(hdfs.new_root())
    files.create_folder(root)
    created: dict[Location, bytes] = {}
    refused: set[Location] = set()
    is_over, pause = threading.Event(), threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            location, content = Location(f"{root}/v{number}-{writer}"), f"{writer}/{number}".encode()
            try:
                files.write_once(location, content)
                created[location] = content
            except CommitStateUnknown:
                continue
            except (FilesUnavailable, Throttled):
                refused.add(location)
                pause.wait(0.05)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, writer) for writer in range(4)]
        wait_until(lambda: len(created) > 50)
        ready = (folder / "ports").stat().st_mtime_ns
        with (folder / "commands").open("wb", buffering=0) as commands:
            commands.write(b"restart\n")
        wait_until(lambda: bool(refused))
        wait_until(lambda: (folder / "ports").stat().st_mtime_ns != ready)
        before = len(created)
        wait_until(lambda: len(created) > before + 20)
        is_over.set()
        for writer in writers:
            writer.result()

    found = {entry.name for entry in later.list_folder(root) or ()}
    for location, content in created.items():
        assert later.read(location) == content
    assert not {location.rpartition("/")[2] for location in refused} & found
