"""Reports of moves: JSON lines, read again when a move is continued."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.sources import Entry, SourceFailed


class MoveState(StrEnum):
    """What has become of an entry."""

    WOULD_MOVE = "would-move"
    """A dry run found nothing against it."""
    BEGUN = "begun"
    """It may be registered; the source has it still, unless it was adopted."""
    DONE = "done"
    KEPT = "kept"
    """An earlier run moved it, and all is as it was."""
    REFUSED = "refused"
    """Nothing was changed, for a reason that can be looked at."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MoveLine:
    """One line of a report."""

    entry: Entry
    target: TableIdentifier
    mode: str
    state: MoveState
    source_location: str | None = None
    """Where the source's metadata file was."""
    location: str | None = None
    """Where the file is that was registered."""
    uuid: str | None = None
    reason: str | None = None
    codes: tuple[str, ...] = ()
    """Of the findings."""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the check said about the table."""
    gc_was_off: bool | None = None
    """Whether `gc.enabled` was false before a fence set it; None where none did."""
    settled_location: str | None = None
    """Where it was at the target when that was last written: registered, or a fence taken back."""

    @property
    def is_fine(self) -> bool:
        """Whether nothing is left to do for people."""
        return self.state in {MoveState.DONE, MoveState.KEPT, MoveState.WOULD_MOVE}

    def but(self, **changes: Any) -> MoveLine:
        """Return the line with some parts changed."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Return the line as it is written."""
        found = {key: value for key, value in asdict(self).items() if value not in (None, (), {})}
        return {
            **found,
            "entry": {"type": self.entry.kind, "name": _names(self.entry.identifier)},
            "target": _names(self.target),
        }


class MoveReport:
    """A file of lines; the last line of an entry counts. Safe to use from several threads."""

    def __init__(self, path: Path | None, source: str, target: str, *, writes: bool = True) -> None:
        """Open a report, and read what an earlier run has left in it.

        Args:
            path: the file; None to keep nothing.
            source: what is moved from.
            target: what is moved to.
            writes: whether lines are added; a dry run only reads.

        Raises:
            SourceFailed: the file is the report of something else, or cannot be read.
        """
        self.earlier: dict[Entry, MoveLine] = {}
        self.is_new = True
        """Whether no run has begun with this file."""
        self._path = path if writes else None
        self._head = {"report": "icetower-move", "source": source, "target": target}
        self._lock = threading.Lock()
        if path is not None and path.exists() and not path.is_file():
            raise SourceFailed(f"{path} is not a file: a report cannot be written there")
        if path is not None:
            self._read(path, self._head)

    def begin(self) -> None:
        """Write what it is a report of, unless an earlier run did; before anything is moved.

        Raises:
            SourceFailed: it cannot be written.
        """
        if self.is_new and self._path is not None:
            # Or begun by a run that was killed, or met a full disk, before it did anything.
            _append(self._path, self._head, anew=True)
        self.is_new = False

    def write(self, line: MoveLine) -> None:
        """Add a line; it outlives this process, whatever ends it."""
        with self._lock:
            self.begin()
            self.earlier[line.entry] = line
            if self._path is not None:
                _append(self._path, line.to_json())

    def _read(self, path: Path, head: Mapping[str, str]) -> None:
        try:
            # Of bytes: names may have separators of lines that are not ours, and a full disk may cut a character.
            texts = path.read_bytes().split(b"\n") if path.exists() else [b""]
            self.is_new = len(texts) == 1 and _encoded(head).startswith(texts[0])
            first = head if self.is_new else json.loads(texts[0] or b"{}")
        except (OSError, ValueError) as error:
            raise SourceFailed(f"{path} is not the report of a move: {error}") from error
        if first != head:
            raise SourceFailed(f"{path} is the report of something else: name another file with --report")
        for text in texts[1:]:
            try:
                line = _line(json.loads(text.decode("utf-8", "surrogatepass")))
            except (ValueError, KeyError, TypeError):
                continue  # A run that was killed may have left half a line.
            self.earlier[line.entry] = line


def _append(path: Path, value: Mapping[str, Any], *, anew: bool = False) -> None:
    try:
        with path.open("wb+" if anew else "ab+") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(_encoded(value))
            file.flush()
    except OSError as error:
        raise SourceFailed(
            f"The report {path} cannot be written: {error.strerror}. Nothing more is moved without it. What was begun "
            "may be in both catalogs: the same command goes on where this one ended"
        ) from error


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _names(identifier: TableIdentifier) -> list[str]:
    return [*identifier.namespace.levels, identifier.name]


def _identifier(names: list[str]) -> TableIdentifier:
    *levels, name = names
    return TableIdentifier(Namespace(tuple(levels)), name)


def _line(value: dict[str, Any]) -> MoveLine:
    entry = value.pop("entry")
    target, state = _identifier(value.pop("target")), MoveState(value.pop("state"))
    for name in ("codes", "notes"):
        value[name] = tuple(value.get(name, ()))
    return MoveLine(Entry(_identifier(entry["name"]), entry["type"]), target, state=state, **value)
