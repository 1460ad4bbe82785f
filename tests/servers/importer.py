"""An importer in a process of its own that is killed at a step."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from app.client.catalog import RemoteCatalog
from app.moving.mover import Mover
from app.moving.reports import MoveReport
from app.moving.rest_source import RestSource
from app.moving.runs import chosen_entries, run_moves
from app.moving.targets import MoveTarget
from app.moving.terms import Mode, Terms
from tests.servers.forks import ForkedProcess


def import_until_killed(old: str, new: str, report: Path, mode: Mode, step: str, times: int) -> None:
    """Import from one Icetower into another one, in a process that is killed when it has reached a step so often."""
    log = report.with_suffix(".log")
    process = ForkedProcess(
        _import, old, new, report, mode, step, times, env=os.environ, cwd=report.parent, log=log
    )
    assert process.wait() == -signal.SIGKILL, f"the step was not reached: {log.read_text()[-3000:]}"


def _import(old: str, new: str, report_file: Path, mode: Mode, wanted: str, left: int) -> None:

    def step(name: str) -> None:
        nonlocal left
        left -= name == wanted
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    terms = Terms(mode, moved_to=new, step=step)
    with RemoteCatalog(old) as theirs, RemoteCatalog(new) as ours:
        source = RestSource(theirs, old)
        report = MoveReport(report_file, source.name, new)
        mover = Mover(source, MoveTarget(ours), terms, report)
        run_moves(source, ours, mover, terms, chosen_entries(source, terms, report), workers=1)
