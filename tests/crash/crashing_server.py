"""A server that kills itself, as SIGKILL would, at a named step of a commit, when it is armed.

Runs in a process of its own. Settings come from the environment. The server is armed by writing the
step's name into a file; it removes the file and dies at that step, or stays there a second if `pause ` stands
before the name.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import uvicorn

from app.main import create_app
from app.settings import load_settings
from app.telemetry import configure_logging


def main(port: int, crash_at_file: Path) -> None:
    """Serve until killed."""

    def step(name: str) -> None:
        try:
            wanted = crash_at_file.read_text()
        except FileNotFoundError:
            return
        if wanted == f"pause {name}":
            crash_at_file.unlink()
            threading.Event().wait(1.0)
        if wanted == name:
            crash_at_file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    settings = load_settings().settings
    configure_logging(settings.log_level)
    uvicorn.run(
        create_app(settings, step=step), host="127.0.0.1", port=port, log_config=None, access_log=False
    )
