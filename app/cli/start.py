"""Where the `icetower` command begins: with little that could be stopped halfway."""

from __future__ import annotations

import sys

from app.cli.terminal.exit_statuses import STOPPED


def run() -> None:
    """Import the command line, which takes a while, and run it; Ctrl+C ends both silently."""
    try:
        from app.cli.main import run as run_command_line
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    run_command_line()
