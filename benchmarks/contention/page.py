"""The page: what was measured, beside the baseline of the same run, and what bounds it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.contention.aims import Aim, aims_of, aims_of_appends
from benchmarks.contention.cases import Case, Measured, MeasuredAppends, Mode
from benchmarks.contention.fixture.server import VERSION
from benchmarks.report import machine

CORES = os.cpu_count() or 1
LOOKED_AT = 32
"""The number of writers at which it is said what bounds a mode."""
HEAD = """# Many writers on one table

Written by `{command}` on {day}, on a machine with {machine}: servers, database and writers share it.
{remark}Compare the figures with each other only.

A writer does what Iceberg's Java client does: it loads the table, reads the manifest list, writes its manifest and its list, and commits. After a
409 it backs off (100 ms, doubled each time, 10 % jitter) and does it all again but for the manifest, 4 times at most; then it **gives up**. Manifests
are never merged, as with `newFastAppend`. Each case has a table of its own, which begins empty.

- *slots off*: the baseline, `commit_hold_seconds=0`. *slots on*: the default, see [landing slots](slots.md). *rebase on*: the table property
  `icetower.rebase=appends`, see [rebases](rebase.md), with slots as by default.
- *sustained*: each writer goes on appending until the time is over. *herd*: all begin at the same moment and append once.
- *20 ms storage*: each call to the store takes so long, for the writers as for the server.
- *landed/s* of a herd is counted until its last commit, of sustained writers while all are at work. *ratio* is to *slots off*.
- *time to land* goes from a commit's first load to its success. *shares*: the longest of them, in fair shares; a fair share is the time in which
  as many commits land as there are writers.
- *cores*: processor time used a second, by servers / writers / Postgres.
"""
COLUMNS = (
    "| writers | | landed/s | ratio | gave up | attempts | p50 s | p99 s | longest s | shares | cores | bound by | aim |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)
EXPLAINED = {
    Mode.OFF: "One commit lands in the time from a load to the end of its commit, and those that were begun meanwhile are "
    "thrown away. While writers back off, nothing may be at work at all.",
    Mode.ON: "The same time bounds it, as each commit must begin on the one before: what the writer does (load, read the list, write the list) "
    "and what the server does (look with the guard, write metadata, move the pointer). Slots only take away the waste. "
    "Who loses the very first race, when no server can know yet who writes, backs off for 100 ms: where files are near, two writers land nine commits "
    "in that time, so it waits for more than three fair shares.",
    Mode.REBASE: "Commits that arrive together share one metadata file and one move of the pointer. Each still costs a load of metadata that "
    "grows with every snapshot, its request, a manifest list of its own and its part of the answer.",
    Mode.PEER: "It looks at no manifests and does not sync files to disk.",
}


def page(
    found: Sequence[Measured],
    appends: Sequence[MeasuredAppends],
    *,
    command: str,
    remark: str,
    no_fixture: str | None,
    failed: Sequence[str],
    plot_name: str | None,
) -> str:
    """Return the page.

    Args:
        found: what was measured with writers.
        appends: what was measured with appends by reference.
        command: what made the page.
        remark: a sentence on how much it can be trusted; may be empty.
        no_fixture: why there is no peer; None if there is one, or was not asked for.
        failed: the cases in which something failed, and what.
        plot_name: the file with the plot.
    """
    head = HEAD.format(
        command=command,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=machine(),
        remark=f"{remark}\n" if remark else "",
    )
    sections = [head.rstrip()]
    if plot_name is not None:
        sections.append(f"![Landed commits a second against writers]({plot_name})")
    sections.append(_all_aims(found, appends))
    if failed:
        sections.append("## Failed\n\n" + "\n".join(f"- `{what[:500]}`" for what in failed))
    sections.append(_bounds(found))
    if no_fixture is not None:
        sections.append(f"Iceberg's own REST fixture is not among them: {no_fixture}.")
    elif any(one.case.mode is Mode.PEER for one in found):
        sections.append(
            f"*fixture* is the REST catalog of Iceberg {VERSION}'s own tests: JdbcCatalog on SQLite, local files."
        )
    for is_herd, title in ((False, "Sustained"), (True, "Herds")):
        places: dict[str, list[Measured]] = {}
        for one in found:
            if one.case.is_herd is is_herd:
                places.setdefault(one.case.where, []).append(one)
        for where, measured in places.items():
            sections.append(f"## {title}: {where}\n\n{COLUMNS}\n{_rows(measured, found)}")
    if appends:
        sections.append(_appends(appends))
    return "\n\n".join(sections) + "\n"


def line(one: Measured, found: Sequence[Measured]) -> str:
    """Return the row of one case, of which `found` has those that it is compared with."""
    baseline, _ = _compared(one, found)
    ratio = "–" if baseline is None or not baseline.rate else f"{one.rate / baseline.rate:.2f}"
    busy = one.busy
    cells = (
        str(one.case.writers),
        one.case.mode.value,
        _number(one.rate),
        ratio,
        f"{one.gave_up} of {one.begun} ({100 * one.lost:.1f} %)",
        f"{one.attempts_each:.2f}",
        *(f"{one.wait_s(part):.2f}" for part in (0.5, 0.99, 1.0)),
        f"{one.shares:.1f}",
        f"{busy.servers:.2f} / {busy.clients:.2f} / {busy.database:.2f}",
        _bound(one),
        ", ".join(aim.shown for aim in _aims(one, found)) or "–",
    )
    return f"| {' | '.join(cells)} |"


def append_line(one: MeasuredAppends) -> str:
    """Return the row of one case of appends by reference."""
    case, busy = one.case, one.busy
    cells = (
        case.set_up.title,
        str(case.clients),
        f"{case.files}{', with metrics' if case.has_metrics else ''}",
        _number(one.rate),
        _number(one.rate * case.files),
        f"{one.appends / max(1, one.snapshots):.1f}",
        *(f"{1000 * one.wait_s(part):.0f}" for part in (0.5, 0.99)),
        f"{busy.servers:.2f} / {busy.clients:.2f} / {busy.database:.2f}",
        busy.bound(case.set_up.processes, CORES),
        ", ".join(aim.shown for aim in aims_of_appends(one)) or "–",
    )
    return f"| {' | '.join(cells)} |"


def _rows(measured: Sequence[Measured], found: Sequence[Measured]) -> str:
    ordered = sorted(measured, key=lambda one: (one.case.writers, list(Mode).index(one.case.mode)))
    return "\n".join(line(one, found) for one in ordered)


def _appends(appends: Sequence[MeasuredAppends]) -> str:
    head = (
        "## Appends by reference\n\nReady-made JSON of data files, see [appending files](append.md); the server looks whether each file is there. "
        "*together*: appends for each snapshot. Metrics are counts and bounds of ten columns.\n\n"
        "| | clients | files in a request | appends/s | files/s | together | p50 ms | p99 ms | cores | bound by | aim |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *map(append_line, appends)])


def _aims(one: Measured, found: Sequence[Measured]) -> list[Aim]:
    return aims_of(one, *_compared(one, found))


def _compared(one: Measured, found: Sequence[Measured]) -> tuple[Measured | None, Measured | None]:
    """Return the baseline of a case, and the same mode with fewer writers."""

    def key(case: Case) -> tuple[object, ...]:
        return (case.set_up, case.latency_ms, case.is_herd)

    alike = [other for other in found if key(other.case) == key(one.case)]
    baselines = [
        b for b in alike if b.case.mode is Mode.OFF and b.case.writers == one.case.writers and b is not one
    ]
    fewer = [f for f in alike if f.case.mode is one.case.mode and f.case.writers < one.case.writers]
    return (
        baselines[0] if baselines else None,
        max(fewer, key=lambda other: other.case.writers) if fewer else None,
    )


def _all_aims(found: Sequence[Measured], appends: Sequence[MeasuredAppends]) -> str:
    """Return how many aims were met, and all that were missed."""
    judged: list[tuple[str, str, Aim]] = []
    for one in found:
        case = one.case
        where = f"{case.mode.value}, {case.writers} writers, {'herd' if case.is_herd else 'sustained'}, {case.where}"
        baseline, fewer = _compared(one, found)
        was = f"{one.rate:.1f}/s, {100 * one.lost:.1f} % gave up, {one.attempts_each:.2f} attempts, {one.shares:.1f} shares"
        was += f", slots off {baseline.rate:.1f}/s" if baseline else ""
        was += f", with {fewer.case.writers} writers {fewer.rate:.1f}/s" if fewer else ""
        judged += [(where, was, aim) for aim in _aims(one, found)]
    for appended in appends:
        of = appended.case
        where = f"append by reference, {of.clients} clients, {of.set_up.title}{', with metrics' if of.has_metrics else ''}"
        judged += [(where, f"{appended.rate:.0f}/s", aim) for aim in aims_of_appends(appended)]
    missed = [f"| {where} | {aim.text} | {was} |" for where, was, aim in judged if not aim.is_met]
    text = f"## Aims\n\n{len(judged) - len(missed)} of {len(judged)} are met; those that are missed are bold in the tables."
    if missed:
        text += "\n\n| missed | aim | measured |\n|---|---|---|\n" + "\n".join(missed)
    return text


def _bounds(found: Sequence[Measured]) -> str:
    """Return what bounds each mode, with what was measured at one number of writers."""
    lines = [
        f"## What bounds it\n\nMeasured with {LOOKED_AT} sustained writers. *waiting* means for storage, for the disk, for a turn or for the end of a back-off; *processors in turn*: a commit is never\nwaiting, but the writer and the server work one after the other.\n"
    ]
    for mode, explained in EXPLAINED.items():
        seen = [
            f"  {one.case.where}: {_number(one.rate)}/s with {one.busy.cores:.1f} of {CORES} cores "
            f"(servers {one.busy.servers:.2f}, writers {one.busy.clients:.2f}, database {one.busy.database:.2f}): "
            f"{_bound(one)}."
            for one in found
            if one.case.mode is mode and one.case.writers == LOOKED_AT and not one.case.is_herd
        ]
        if seen:
            lines.append(f"- **{mode.value}.** {explained}")
            lines += [f"  - {text.strip()}" for text in seen]
    return "\n".join(lines)


def _bound(one: Measured) -> str:
    # A process of Python uses one core, one of Java as many as there are.
    is_java = one.case.mode is Mode.PEER
    return one.busy.bound(CORES if is_java else one.case.set_up.processes, CORES)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
