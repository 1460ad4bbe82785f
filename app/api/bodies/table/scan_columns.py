"""JSON of planned files, written from columns. Of files that are alike only the first becomes an object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from app.engine.scan.scan_planner import PlannedColumns, PlannedFile

_SLOT = b"\0"
"""Stands where files differ: in JSON this byte is always escaped."""

Task = dict[str, Any]


def written_as_columns(
    run: PlannedColumns, task_of: Callable[[PlannedFile], Task]
) -> Sequence[Task | orjson.Fragment]:
    """Return the file scan tasks of a run of files, as parts of a JSON array.

    Args:
        run: files without deletes.
        task_of: writes the task of one file, without statistics of its columns.

    Raises:
        InvalidMetadata: an entry of the manifest makes no sense; names the file.
    """
    files = run.files
    # The first file of each number; a later one would be overwritten by it.
    first = dict(zip(reversed(files.alike), range(len(run) - 1, -1, -1), strict=True))
    if not run or 2 * len(first) > len(run):
        return list(map(task_of, run))
    templates = {number: _template(run, at, task_of) for number, at in first.items()}
    differing = zip(
        _escaped(files.paths),
        files.sizes,
        files.record_counts,
        _members("split-offsets", files.split_offsets),
        _members("first-row-id", files.first_row_ids),
        strict=True,
    )
    texts = [templates[number] % values for number, values in zip(files.alike, differing, strict=True)]
    return [orjson.Fragment(",".join(texts).encode())]


def _template(run: PlannedColumns, at: int, task_of: Callable[[PlannedFile], Task]) -> str:
    """Return the task of a file, to be filled with the values in which those like it differ."""
    (planned,) = run.part(at, at + 1)
    task = task_of(planned)
    file: Task = task["data-file"]
    file.pop("split-offsets", None)
    file.pop("first-row-id", None)
    file["file-path"] = orjson.Fragment(b'"' + _SLOT + b'"')
    file["file-size-in-bytes"] = orjson.Fragment(_SLOT)
    # Behind the number are the members that not every file has.
    file["record-count"] = orjson.Fragment(3 * _SLOT)
    return orjson.dumps(task).decode().replace("%", "%%").replace(_SLOT.decode(), "%s")


def _escaped(texts: Sequence[str]) -> Sequence[str]:
    """Return texts as JSON has them between its quotation marks; most need no change."""
    all_of_them = "".join(texts)
    if all_of_them.isprintable() and '"' not in all_of_them and "\\" not in all_of_them:
        return texts
    return [orjson.dumps(text).decode()[1:-1] for text in texts]


def _members(name: str, values: Sequence[Any]) -> Sequence[str]:
    """Return a member of a JSON object for each value; nothing for None."""
    known = {value: f',"{name}":{orjson.dumps(value).decode()}' for value in set(values) - {None}}
    return [known.get(value, "") for value in values]
