"""An importer in a process of its own that is killed at a step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from app.client.catalog import RemoteCatalog
from app.moving.mover import Mover
from app.moving.reports import MoveReport
from app.moving.rest_source import RestSource
from app.moving.runs import chosen_entries, run_moves
from app.moving.targets import MoveTarget
from app.moving.terms import Mode, Terms


def import_until_killed(old: str, new: str, report: Path, mode: Mode, step: str, times: int) -> None:
    """Import from one Icetower into another one, in a process that is killed when it has reached a step so often."""
    command = [sys.executable, "-m", "tests.servers.importer", old, new, str(report), mode, step, str(times)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == -signal.SIGKILL, "the step was not reached"


def main() -> None:
    old, new, report_file, mode, wanted, times = sys.argv[1:]
    left = int(times)

    def step(name: str) -> None:
        nonlocal left
        left -= name == wanted
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    terms = Terms(Mode(mode), moved_to=new, step=step)
    with RemoteCatalog(old) as theirs, RemoteCatalog(new) as ours:
        source = RestSource(theirs, old)
        report = MoveReport(Path(report_file), source.name, new)
        mover = Mover(source, MoveTarget(ours), terms, report)
        run_moves(source, ours, mover, terms, chosen_entries(source, terms, report), workers=1)


if __name__ == "__main__":
    main()
