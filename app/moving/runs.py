"""Runs: all that is chosen of a source is moved, several at once, and counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Event, Thread
from typing import Final

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed, CatalogRefused
from app.engine.model.identifiers import Namespace
from app.moving.choices import Choice
from app.moving.mover import LET_GO_MEANWHILE, Mover, is_another
from app.moving.reports import MoveLine, MoveReport, MoveState
from app.moving.sources import Entry, Source, SourceFailed
from app.moving.targets import MoveTarget
from app.moving.terms import Mode, Terms

LAST_SECONDS: Final = 10.0
"""How long what is on its way when a run is interrupted is waited for; the next run brings it to its end."""
_LOCATION: Final = "location"


@dataclass(slots=True)
class MoveSummary:
    """What a run has come to."""

    states: Counter[MoveState] = field(default_factory=Counter)
    wrong: list[MoveLine] = field(default_factory=list)
    """Those that people have to look at."""
    namespaces: dict[Namespace, str] = field(default_factory=dict)
    """Namespaces that could not be made, with reasons."""
    remarks: list[str] = field(default_factory=list)

    @property
    def is_fine(self) -> bool:
        """Whether all that was chosen is moved."""
        return not self.wrong and not self.namespaces

    def add(self, line: MoveLine) -> None:
        """Count one entry."""
        self.states[line.state] += 1
        if not line.is_fine:
            self.wrong.append(line)
        if LET_GO_MEANWHILE in line.notes and line.state is MoveState.DONE:
            self.remarks.append(f"{line.target}: {LET_GO_MEANWHILE}")


def chosen_entries(source: Source, terms: Terms, report: MoveReport) -> list[Entry]:
    """Return what is to be moved: what the source has, and what an earlier run left undone."""
    found = {
        entry
        for namespace in source.namespaces()
        for entry in source.entries(namespace)
        if terms.choice.has(entry)
    }
    pending = {
        entry
        for entry, line in report.earlier.items()
        if terms.choice.has(entry) and line.location is not None and not line.is_fine
    }
    # What was asked for by name and is not there fails like any other.
    named = {entry.identifier for entry in found | pending}
    missing = {Entry(identifier) for identifier in terms.choice.identifiers - named}
    return sorted(found | pending | missing)


def run_moves(
    source: Source,
    target: RemoteCatalog,
    mover: Mover,
    terms: Terms,
    entries: Iterable[Entry],
    *,
    workers: int,
    listener: Callable[[MoveLine], None] = lambda _line: None,
) -> MoveSummary:
    """Move entries, with their namespaces.

    Args:
        source: where they are.
        target: where they go.
        mover: moves one.
        terms: how.
        entries: what is moved.
        workers: how many at once.
        listener: called with each entry as it ends.
    """
    summary = MoveSummary()
    wanted = list(entries)
    if not terms.dry_run:
        _make_namespaces(source, target, terms, wanted, summary)
    with closing(_in_parallel(mover.move, wanted, workers)) as lines:
        for line in lines:
            summary.add(line)
            listener(line)
    return summary


def _in_parallel(
    work: Callable[[Entry], MoveLine], entries: Iterable[Entry], workers: int
) -> Generator[MoveLine, None, None]:
    """Yield what becomes of entries, as they end; after an interruption nothing more is begun.

    Not with a pool of the standard library: what is queued there would go on, and a process waits for its threads.
    """
    waiting, is_stopped = Queue[Entry](), Event()
    for entry in entries:
        waiting.put(entry)
    total, ended = waiting.qsize(), Queue[MoveLine | BaseException]()

    def carry_out() -> None:
        with suppress(Empty):
            while not is_stopped.is_set():
                entry = waiting.get_nowait()
                try:
                    ended.put(work(entry))
                except BaseException as error:  # noqa: BLE001 - raised by the thread that waits for it
                    ended.put(error)

    threads = [Thread(target=carry_out, name=f"moves-{number}", daemon=True) for number in range(workers)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(total):
            outcome = ended.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        is_stopped.set()
        until = time.monotonic() + LAST_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))


def _make_namespaces(
    source: Source, target: RemoteCatalog, terms: Terms, entries: Iterable[Entry], summary: MoveSummary
) -> None:
    """Make the namespaces of entries, or all if nothing is left out, with properties."""
    # Names may be new for single tables too.
    names = {
        terms.choice.name_of(entry.identifier).namespace: entry.identifier.namespace for entry in entries
    }
    wanted = {entry.identifier.namespace for entry in entries}
    if terms.choice.is_everything:
        wanted |= set(source.namespaces())
    for namespace in sorted(wanted):
        name = terms.choice.namespace_of(namespace)
        if name in names or terms.choice.is_everything:
            names[name] = namespace
    for name, namespace in sorted(names.items()):
        try:
            properties = dict(source.properties(namespace))
            if _has_default_location(source, namespace, properties):
                left_out = properties.pop(_LOCATION)
                summary.remarks.append(
                    f"Namespace {name}: location {left_out} looks like the source's own choice and is left out"
                )
            if _LOCATION in properties:
                properties[_LOCATION] = terms.paths.apply(properties[_LOCATION])
            _make_namespace(target, name, properties, summary)
        except (CallFailed, SourceFailed) as failure:
            summary.namespaces[name] = str(failure)


def _has_default_location(source: Source, namespace: Namespace, properties: Mapping[str, str]) -> bool:
    """Say whether a namespace's location may be what the source shows where none was set.

    That is a root, then the levels of its name; a Hive metastore shows `<name>.db`.
    """
    levels = namespace.levels
    location = properties.get(_LOCATION, "").rstrip("/").removesuffix(".db")
    return source.shows_default_locations and tuple(location.split("/")[-len(levels) :]) == levels


def _make_namespace(
    target: RemoteCatalog, name: Namespace, properties: Mapping[str, str], summary: MoveSummary
) -> None:
    """Make a namespace, or add to one that is there what it has not got."""
    try:
        target.namespaces.create(name, properties)
    except CatalogRefused as refused:
        if refused.status != 409:
            raise
    else:
        return
    present = target.namespaces.load(name)
    new = {key: value for key, value in properties.items() if key not in present}
    if new:
        target.namespaces.update_properties(name, new)
    others = sorted(key for key in properties if present.get(key, properties[key]) != properties[key])
    if others:
        summary.remarks.append(f"Namespace {name} keeps its own {', '.join(others)}")


def recheck(
    source: Source, report: MoveReport, choice: Choice | None = None, target: MoveTarget | None = None
) -> Iterator[tuple[MoveLine, str]]:
    """Yield what was moved and is not at the source as the report has it, each with a sentence.

    Args:
        source: where it was.
        report: of the moves.
        choice: what is looked at.
        target: where it is; it may write to the very folders that are the source.
    """
    for entry, line in sorted(report.earlier.items()):
        if choice is not None and not choice.has(entry):
            continue
        if line.state not in {MoveState.DONE, MoveState.KEPT}:
            yield line, f"it was not moved: {line.reason or line.state}"
            continue
        try:
            location = source.find_location(entry)
        except (CallFailed, SourceFailed) as failure:
            yield line, f"the source does not say: {failure}"
            continue
        if line.mode == Mode.ADOPT and source.has_entries:
            if location is not None:
                yield line, f"the source has a table or view of that name again, at {location}"
        elif location is None:
            yield line, "the source has dropped it"
        elif location != line.source_location and not _is_own(source, target, line, location):
            yield line, f"the source has moved on: from {line.source_location} to {location}"
        elif is_another(source, line, location):
            yield line, f"the source has another table or view at {location}"


def _is_own(source: Source, target: MoveTarget | None, line: MoveLine, location: str) -> bool:
    """Say whether what a source without entries has now is a commit of the target."""
    if target is None or source.has_entries:
        return False
    present = target.find_readable(line.target, line.entry.kind)
    return present is not None and present.location == location
