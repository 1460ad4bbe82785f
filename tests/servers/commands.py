"""`icetower` commands that run in a process of their own, as an operator runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.icetower import environment_in

_COMMAND = (sys.executable, "-c", "from app.cli.start import run; run()")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its output, one JSON document a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def icetower_command(folder: Path, *arguments: str, **settings: str) -> Ended:
    """Run a command on the database and warehouse in a folder, as `icetower_process` has them there."""
    done = subprocess.run(
        [*_COMMAND, *arguments],
        env=environment_in(folder, settings),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
