"""Runs of an importer in this process, with one report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from app.client.catalog import RemoteCatalog
from app.moving.choices import Choice, Names
from app.moving.mover import Mover
from app.moving.reports import MoveLine, MoveReport, MoveState
from app.moving.runs import chosen_entries, run_moves
from app.moving.sources import Source
from app.moving.targets import MoveTarget
from app.moving.terms import Mode, Terms


@dataclass
class Moves:
    """Moves from any source to one server, one run after the other."""

    uri: str
    report: Path
    is_foreign: bool = False
    """Whether the server is treated as one that knows none of Icetower's extensions."""
    lines: dict[str, MoveLine] = field(default_factory=dict)
    """What became of each entry in the last run, by its name at the source."""

    def run(
        self, source: Source, terms: Terms | None = None, renamed: dict[Names, Names] | None = None
    ) -> dict[str, MoveState]:
        """Move all that is chosen; answer what became of each."""
        terms = terms or Terms(Mode.ADOPT)
        terms = replace(terms, moved_to=terms.moved_to or self.uri)
        if renamed is not None:
            terms = replace(terms, choice=Choice(renamed=renamed))
        self.lines.clear()
        report = MoveReport(self.report, source.name, self.uri, writes=not terms.dry_run)
        with RemoteCatalog(self.uri) as target:
            if self.is_foreign:
                target.config = target.config.model_copy(update={"endpoints": None})
            mover = Mover(source, MoveTarget(target), terms, report)
            entries = chosen_entries(source, terms, report)
            run_moves(source, target, mover, terms, entries, workers=4, listener=self._note)
        return {name: line.state for name, line in self.lines.items()}

    def _note(self, line: MoveLine) -> None:
        self.lines[str(line.entry.identifier)] = line
