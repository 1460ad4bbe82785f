"""An Icetower of the demo's own: SQLite and a folder for a warehouse, in a process beside this one."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

USUAL_PORT = 8181
PATIENCE_SECONDS = 60.0
SETTINGS_FILE = "icetower.toml"


class ServerNotReady(Exception):
    """The server ended or did not answer; the message holds the end of its log."""


@dataclass(frozen=True)
class Server:
    """A running server: its address, and the file that says how it was configured."""

    uri: str
    settings_file: Path


def clear(folder: Path) -> None:
    """Make a folder empty, so that the demo starts from nothing.

    Raises:
        ServerNotReady: the folder has files, and no demo wrote them.
    """
    if folder.exists() and any(folder.iterdir()) and not _is_of_a_demo(folder):
        raise ServerNotReady(f"{folder} is not a demo's folder: it has other files. Choose another --folder.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def environment() -> dict[str, str]:
    """Return the caller's environment without settings of Icetower, which would win over the demo's own."""
    return {name: text for name, text in os.environ.items() if not name.startswith("ICETOWER_")}


def _is_of_a_demo(folder: Path) -> bool:
    """Say whether a demo has written a folder: any other server may have its settings in one, too."""
    try:
        found = tomllib.loads((folder / SETTINGS_FILE).read_text())
    except (OSError, ValueError):
        return False
    return found.pop("port", None) is not None and found == _places(folder)


def _places(folder: Path) -> dict[str, object]:
    """Return the settings that say where the demo keeps its tables."""
    return {
        "database_url": f"sqlite:///{folder / 'icetower.db'}",
        "default_warehouse_location": str(folder / "warehouse"),
    }


@contextmanager
def icetower(folder: Path) -> Iterator[Server]:
    """Run `icetower serve` until the block ends.

    Raises:
        ServerNotReady: it did not come up.
    """
    port = _free_port(USUAL_PORT)
    settings_file = folder / SETTINGS_FILE
    settings = {"port": port, **_places(folder)}
    settings_file.write_text("".join(f"{key} = {json.dumps(text)}\n" for key, text in settings.items()))
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve"],
            # Nor those of an `.env` in the caller's folder.
            cwd=folder,
            env=environment() | {"ICETOWER_CONFIG": str(settings_file)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        uri = f"http://127.0.0.1:{port}"
        _wait_until_ready(process, uri, log)
        yield Server(uri, settings_file)
    finally:
        process.terminate()
        process.wait()


def _free_port(wanted: int) -> int:
    with socket.socket() as listener:
        # Without it, a port that was in use a minute ago counts as taken.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
        except OSError:
            listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], uri: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(f"{uri}/ready", timeout=5):
                return
        except (URLError, OSError):
            pass
        try:
            status = process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
        raise ServerNotReady(f"icetower serve ended with status {status}:\n{log.read_text()[-2000:]}")
    raise ServerNotReady(f"{uri}/ready did not answer within a minute:\n{log.read_text()[-2000:]}")
