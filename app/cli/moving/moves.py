"""Carrying out a move for a person: progress, what has become of each table, and the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from app.cli.terminal.arguments import written
from app.cli.terminal.exit_statuses import REFUSED
from app.cli.terminal.output import print_json, print_line, remark, warn
from app.cli.terminal.rendering import print_table, shown_progress
from app.cli.terminal.texts import counted
from app.client.catalog import RemoteCatalog
from app.moving.choices import Choice
from app.moving.mover import Mover
from app.moving.reports import MoveLine, MoveReport, MoveState
from app.moving.runs import MoveSummary, chosen_entries, recheck, run_moves
from app.moving.sources import Source, SourceFailed
from app.moving.targets import MoveTarget
from app.moving.terms import Mode, Terms

SHOWN_FAILURES = 50
_WORDS = {
    MoveState.WOULD_MOVE: "would be moved",
    MoveState.DONE: "moved",
    MoveState.KEPT: "moved before",
    MoveState.REFUSED: "refused",
    MoveState.FAILED: "failed",
}
_WORDS_WHERE_IT_STAYS = {
    **_WORDS,
    MoveState.WOULD_MOVE: "would be registered",
    MoveState.DONE: "registered",
    MoveState.KEPT: "registered before",
}


def carry_out(
    source: Source,
    target: RemoteCatalog,
    target_name: str,
    terms: Terms,
    *,
    report_file: Path,
    workers: int,
    only_recheck: bool,
    as_json: bool,
    separator: str,
) -> None:
    """Move what is chosen, and exit with 1 if anything is left to do for people."""
    report = MoveReport(report_file, source.name, target_name, writes=not terms.dry_run)
    if only_recheck:
        if report.is_new:
            raise SourceFailed(
                f"There is no report {report_file}: --recheck looks at what one says was moved"
            )
        _recheck(source, report, terms.choice, MoveTarget(target), separator, as_json=as_json)
        return
    entries = chosen_entries(source, terms, report)
    if entries:
        report.begin()
        for text in source.warnings:
            warn(text)
    words = _WORDS_WHERE_IT_STAYS if terms.mode in {Mode.LOOK_ON, Mode.KEEP} else _WORDS
    lines: list[MoveLine] = []
    with shown_progress(len(entries)) as progress:

        def note(line: MoveLine) -> None:
            progress.say(f"{written(line.entry.identifier, separator)}: {words[line.state]}")
            progress.advance()
            if as_json or terms.dry_run:
                lines.append(line)

        mover = Mover(source, MoveTarget(target), terms, report)
        summary = run_moves(source, target, mover, terms, entries, workers=workers, listener=note)
    if as_json:
        print_json({"summary": _counts(summary), "entries": [line.to_json() for line in sorted_lines(lines)]})
    else:
        _show(summary, sorted_lines(lines), words, separator)
    for namespace, reason in summary.namespaces.items():
        warn(f"Namespace {written(namespace, separator)} could not be made: {reason}")
    for text in summary.remarks:
        remark(text)
    if not summary.is_fine:
        raise typer.Exit(REFUSED)


def sorted_lines(lines: list[MoveLine]) -> list[MoveLine]:
    """Return lines by name."""
    return sorted(lines, key=lambda line: line.entry)


def _counts(summary: MoveSummary) -> dict[str, int]:
    return {state.value: summary.states[state] for state in _WORDS if summary.states[state]}


def _show(
    summary: MoveSummary, lines: list[MoveLine], words: Mapping[MoveState, str], separator: str
) -> None:
    if lines:
        print_table(
            ["", "name", "becomes", "", "findings"],
            [
                [
                    line.entry.kind,
                    written(line.entry.identifier, separator),
                    written(line.target, separator),
                    words[line.state],
                    "; ".join([*([line.reason] if line.reason else []), *line.notes]),
                ]
                for line in lines
            ],
        )
    else:
        for line in sorted_lines(summary.wrong)[:SHOWN_FAILURES]:
            warn(f"{written(line.entry.identifier, separator)} {words[line.state]}: {line.reason}")
    parts = [f"{summary.states[state]} {word}" for state, word in words.items() if summary.states[state]]
    total = sum(summary.states.values())
    print_line(f"{counted(total, 'name')}: {', '.join(parts)}." if total else "There is nothing to move.")


def _recheck(
    source: Source, report: MoveReport, choice: Choice, target: MoveTarget, separator: str, *, as_json: bool
) -> None:
    found = list(recheck(source, report, choice, target))
    looked_at = sum(map(choice.has, report.earlier))
    if as_json:
        print_json([{**line.to_json(), "change": text} for line, text in found])
    else:
        for line, text in found:
            warn(f"{written(line.entry.identifier, separator)}: {text}")
        print_line(f"{counted(looked_at, 'name')} looked at, {len(found)} changed.")
    if found:
        raise typer.Exit(REFUSED)
