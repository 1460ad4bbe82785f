"""Random histories: changes to a table made by the reference, each with the same thing described for our checks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from app.engine.conflicts.operations import (
    Append,
    CherryPickOperation,
    Delete,
    Operation,
    Overwrite,
    RemovedFile,
    ReplacePartitions,
    RewriteFiles,
    RowDelta,
)
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import ALWAYS_TRUE
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.data_types.values import to_bytes
from app.engine.model.files.manifests import DataFile, FileContent, ManifestContent
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.selection.files import FileSelection, RowFilter
from tests.conformance.conflicts.reference import ReferenceTable, Refused, commit

LONG = parse_primitive("long")
STRING = parse_primitive("string")
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "category", "type": "string", "required": False},
        {"id": 3, "name": "note", "type": "string", "required": False},
    ],
}
SPECS: list[list[dict[str, Any]]] = [
    [],
    [{"name": "category", "transform": "identity", "source-id": 2, "field-id": 1000}],
    [{"name": "category_bucket", "transform": "bucket[3]", "source-id": 2, "field-id": 1000}],
    [
        {"name": "category", "transform": "identity", "source-id": 2, "field-id": 1000},
        {"name": "id_tens", "transform": "truncate[10]", "source-id": 1, "field-id": 1001},
    ],
]
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is ready to be committed, in the reference and in our words."""

    name: str
    pending: Any
    operation: Operation


class World:
    """A table of the reference, and random changes to it."""

    def __init__(self, table: ReferenceTable, rng: random.Random, format_version: int) -> None:
        self.table = table
        self.java = table.table
        self.rng = rng
        self.format_version = format_version
        self.specs = [self.java.spec()]
        self.spec = self.java.spec()

    @property
    def has_categories(self) -> bool:
        """Whether partitions answer by themselves what a category is, whichever spec a file is of."""
        return all(
            any(str(field.transform()) == "identity" for field in spec.fields()) for spec in self.specs
        )

    def evolve(self) -> None:
        """Add a partition field, or remove one.

        Not while a change is pending: the reference's would not know the spec, and fall over it.
        """
        names = [field.name() for field in self.spec.fields()]
        change = self.java.updateSpec()
        if "category" in names or not names:
            change = change.removeField("category") if names else change.addField("category")
        else:
            change = change.addField("category")
        commit(change)
        self.java.refresh()
        self.specs.append(self.java.spec())

    def chance(self, of: float = 0.5) -> bool:
        return self.rng.random() < of

    # Files

    def data_file(self) -> DataFile:
        """Return a file of few rows, some of them with metrics."""
        category = self.rng.choice(["a", "b", "c", None])
        lowest = self.rng.randrange(0, 40)
        highest = min(lowest + self.rng.randrange(0, 9), lowest // 10 * 10 + 9)
        rows = max(1, highest - lowest)
        bounds = self.chance(0.8)
        file = DataFile(
            content=FileContent.DATA,
            file_path=Location(f"mem://files/data-{next(_numbers)}.parquet"),
            file_format="parquet",
            spec_id=SpecId(self.spec.specId()),
            partition=self.partition(category, lowest),
            record_count=rows,
            file_size_in_bytes=100,
        )
        if bounds:
            file = replace(
                file,
                value_counts={1: rows, 2: rows},
                null_value_counts={1: 0, 2: rows if category is None else 0},
                lower_bounds={1: to_bytes(LONG, lowest)}
                | ({2: to_bytes(STRING, category)} if category is not None else {}),
                upper_bounds={1: to_bytes(LONG, highest)}
                | ({2: to_bytes(STRING, category)} if category is not None else {}),
            )
        return file

    def partition(self, category: str | None, lowest: int) -> tuple[Any, ...]:
        """Return the partition of a row."""
        transforms = [str(field.transform()) for field in self.spec.fields()]
        values: list[Any] = []
        for transform in transforms:
            if transform == "identity":
                values.append(category)
            elif transform.startswith("bucket"):
                values.append(None if category is None else {"a": 0, "b": 1, "c": 2}[category])
            else:
                values.append(lowest // 10 * 10)
        return tuple(values)

    def delete_file(self, data: list[DataFile]) -> DataFile:
        """Return a delete file: positions, equality, or (which v3 needs) a deletion vector."""
        number = next(_numbers)
        target = self.rng.choice(data) if data else self.data_file()
        common = replace(
            target,
            content=FileContent.POSITION_DELETES,
            file_path=Location(f"mem://files/delete-{number}.parquet"),
            record_count=1,
            value_counts=None,
            null_value_counts=None,
            lower_bounds=None,
            upper_bounds=None,
            first_row_id=None,
            split_offsets=None,
            sort_order_id=None,
        )
        if self.chance(0.35):
            lowest = self.rng.randrange(0, 40)
            with_bounds = self.chance()
            return replace(
                common,
                content=FileContent.EQUALITY_DELETES,
                equality_ids=(1,),
                sort_order_id=None,
                value_counts={1: 1} if with_bounds else None,
                null_value_counts={1: 0} if with_bounds else None,
                lower_bounds={1: to_bytes(LONG, lowest)} if with_bounds else None,
                upper_bounds={1: to_bytes(LONG, lowest + 3)} if with_bounds else None,
            )
        if self.format_version >= 3:
            return replace(
                common,
                file_path=Location(f"mem://files/delete-{number}.puffin"),
                file_format="puffin",
                referenced_data_file=target.file_path,
                content_offset=4,
                content_size_in_bytes=40,
            )
        return replace(common, referenced_data_file=target.file_path if self.chance() else None)

    def live_data(self) -> list[DataFile]:
        return [entry.file for entry in self.table.live(ManifestContent.DATA)]

    def live_deletes(self) -> list[DataFile]:
        return [entry.file for entry in self.table.live(ManifestContent.DELETES)]

    def some(self, files: list[DataFile], most: int = 2) -> list[DataFile]:
        return self.rng.sample(files, min(len(files), self.rng.randint(1, most))) if files else []

    # Filters

    def filter(self, depth: int = 1, *, in_or: bool = False) -> Any:
        """Return a filter in JSON.

        What is not equal to a value is asked only where partitions answer it alone: where both bounds of a file are
        that value, we see that no row matches, and the reference does not.
        """
        shape = self.rng.randrange(6)
        if shape == 0 and depth:
            kind = self.rng.choice(["and", "or"])
            left, right = (self.filter(depth - 1, in_or=kind == "or") for _ in range(2))
            return {"type": kind, "left": left, "right": right}
        if shape == 1 and depth:
            return {"type": "not", "child": self._comparison()}
        if shape < 4:
            kind = self.rng.choice(["eq", "not-eq"]) if self.has_categories and not in_or else "eq"
            return {"type": kind, "term": "category", "value": self.rng.choice(["a", "b", "c"])}
        if self.chance(0.2):
            return {"type": "is-null", "term": "category"}
        if self.chance(0.3):
            return {"type": "eq", "term": "id", "value": self.rng.randrange(0, 41, 5)}
        return self._comparison()

    def _comparison(self) -> Any:
        kind = self.rng.choice(["lt", "gt-eq"])
        return {"type": kind, "term": "id", "value": self.rng.randrange(0, 41, 5)}

    def whole_file_filter(self) -> Any | None:
        """Return a filter that matches files of the table as a whole or not at all; None if none was found."""
        metadata = self.table.metadata()
        live = self.live_data()
        for _ in range(4):
            document = self.filter()
            rows = RowFilter.of(parse_expression(document), metadata.current_schema)
            matching = FileSelection(rows, metadata.partition_specs)
            if not any(map(matching.matches_in_part, live)):
                return document
        return None

    # Changes

    def change(self) -> Change:
        """Return a random change to the table as it is now."""
        makers: list[Callable[[], Change | None]] = [
            self.append,
            self.delete,
            self.overwrite,
            self.overwrite,
            self.replace_partitions,
            self.row_delta,
            self.row_delta,
            self.rewrite_files,
            self.rewrite_files,
            self.cherry_pick,
        ]
        while True:
            # The files of one change are of one spec, which need not be the default one.
            self.spec = self.rng.choice(self.specs)
            made = self.rng.choice(makers)()
            if made is not None:
                return made

    def base(self) -> int | None:
        snapshot = self.java.currentSnapshot()
        return None if snapshot is None else snapshot.snapshotId()

    def _from_base(self, pending: Any) -> None:
        base = self.base()
        if base is not None:
            pending.validateFromSnapshot(base)

    def append(self) -> Change:
        pending = self.java.newFastAppend() if self.chance() else self.java.newAppend()
        for _ in range(self.rng.randint(1, 3)):
            pending.appendFile(self.table.file(self.data_file()))
        return Change("append", pending, Append())

    def delete(self) -> Change | None:
        pending = self.java.newDelete()
        removed = self.some(self.live_data()) if self.chance(0.7) else []
        row_filter = self.whole_file_filter() if not removed or self.chance(0.3) else None
        if not removed and row_filter is None:
            return None
        for file in removed:
            pending.deleteFile(self.table.file(file))
        if row_filter is not None:
            pending.deleteFromRowFilter(self.table.filter(row_filter))
        checks = self.chance(0.7)
        if checks:
            pending.validateFilesExist()
        return Change(
            "delete",
            pending,
            Delete(
                row_filter=None if row_filter is None else parse_expression(row_filter),
                removed_files=tuple(map(RemovedFile.of, removed)),
                checks_existence=checks,
            ),
        )

    def overwrite(self) -> Change | None:
        pending = self.java.newOverwrite()
        self._from_base(pending)
        row_filter = self.whole_file_filter() if self.chance() else None
        removed = self.some(self.live_data()) if row_filter is None or self.chance(0.2) else []
        if row_filter is None and not removed:
            return None
        conflict_filter = self.filter() if self.chance() else None
        added = [self.data_file() for _ in range(self.rng.randint(0, 2))]
        new_data, new_deletes = self.chance(0.6), self.chance(0.7)
        if conflict_filter is not None and removed:
            new_deletes = False  # `test_agreed_differences` says why
        matches = row_filter is not None and self.chance(0.2)
        for file in added:
            pending.addFile(self.table.file(file))
        for file in removed:
            pending.deleteFile(self.table.file(file))
        if row_filter is not None:
            pending.overwriteByRowFilter(self.table.filter(row_filter))
        if conflict_filter is not None:
            pending.conflictDetectionFilter(self.table.filter(conflict_filter))
        if new_data:
            pending.validateNoConflictingData()
        if new_deletes:
            pending.validateNoConflictingDeletes()
        if matches:
            if not added:
                return None  # without files the reference does not know which spec to check
            pending.validateAddedFilesMatchOverwriteFilter()
        return Change(
            "overwrite",
            pending,
            Overwrite(
                row_filter=None if row_filter is None else parse_expression(row_filter),
                conflict_filter=None if conflict_filter is None else parse_expression(conflict_filter),
                added_files=tuple(added),
                removed_files=tuple(map(RemovedFile.of, removed)),
                checks_new_data=new_data,
                checks_new_deletes=new_deletes,
                checks_added_match_filter=matches,
            ),
        )

    def replace_partitions(self) -> Change | None:
        pending = self.java.newReplacePartitions()
        self._from_base(pending)
        added = [self.data_file() for _ in range(self.rng.randint(1, 2))]
        for file in added:
            pending.addFile(self.table.file(file))
        new_data, new_deletes, append_only = self.chance(0.6), self.chance(0.6), self.chance(0.2)
        live = self.live_data()
        taken = {(file.spec_id, file.partition) for file in live}
        if append_only:
            is_all = bool(live) and not self.spec.fields()
            if is_all or any((file.spec_id, file.partition) in taken for file in added):
                return None
            pending.validateAppendOnly()
        if new_data:
            pending.validateNoConflictingData()
        if new_deletes:
            pending.validateNoConflictingDeletes()
        keys = tuple((file.spec_id, file.partition) for file in added)
        operation = ReplacePartitions(keys, new_data, new_deletes, append_only)
        return Change("replace-partitions", pending, operation)

    def row_delta(self) -> Change | None:
        pending = self.java.newRowDelta()
        self._from_base(pending)
        live, live_deletes = self.live_data(), self.live_deletes()
        deletes = [self.delete_file(live) for _ in range(self.rng.randint(0, 2))] if live else []
        vectors = {file.referenced_data_file for file in deletes if file.file_format == "puffin"}
        if len(vectors) < sum(file.file_format == "puffin" for file in deletes):
            return None
        if any(
            file.file_format == "puffin" and file.referenced_data_file in vectors for file in live_deletes
        ):
            return None  # a vector of the base would have to go
        rows = [self.data_file() for _ in range(self.rng.randint(0 if deletes else 1, 1))]
        removed = self.some(live, 1) if self.chance(0.3) else []
        removed_deletes = self.some(live_deletes, 1) if self.chance(0.3) else []
        referenced = {file.file_path for file in self.some(live)} if self.chance(0.7) else set()
        conflict_filter = self.filter() if self.chance() else None
        deleted_files, new_data, new_deletes = self.chance(), self.chance(), self.chance()
        if conflict_filter is not None and removed:
            new_deletes = False  # `test_agreed_differences` says why
        for file in rows:
            pending.addRows(self.table.file(file))
        for file in deletes:
            pending.addDeletes(self.table.file(file))
        for file in removed:
            pending.removeRows(self.table.file(file))
        for file in removed_deletes:
            pending.removeDeletes(self.table.file(file))
        if referenced:
            pending.validateDataFilesExist(sorted(referenced))
        if conflict_filter is not None:
            pending.conflictDetectionFilter(self.table.filter(conflict_filter))
        if deleted_files:
            pending.validateDeletedFiles()
        if new_data:
            pending.validateNoConflictingDataFiles()
        if new_deletes:
            pending.validateNoConflictingDeleteFiles()
        return Change(
            "row-delta",
            pending,
            RowDelta(
                conflict_filter=ALWAYS_TRUE if conflict_filter is None else parse_expression(conflict_filter),
                referenced_files=frozenset(referenced),
                vector_targets=frozenset(path for path in vectors if path is not None),
                removed_files=tuple(map(RemovedFile.of, removed)),
                removed_delete_files=tuple(map(RemovedFile.of, removed_deletes)),
                checks_deleted_files=deleted_files,
                checks_new_data=new_data,
                checks_new_deletes=new_deletes,
            ),
        )

    def rewrite_files(self) -> Change | None:
        pending = self.java.newRewrite()
        live, live_deletes = self.live_data(), self.live_deletes()
        removed = self.some(live) if self.chance(0.9) else []
        removed_deletes = self.some(live_deletes, 1) if not removed or self.chance(0.2) else []
        if not removed and not removed_deletes:
            return None
        self._from_base(pending)
        for file in (*removed, *removed_deletes):
            pending.deleteFile(self.table.file(file))
        number = None
        if removed:
            added = replace(
                removed[0],
                file_path=Location(f"mem://files/rewritten-{next(_numbers)}.parquet"),
                first_row_id=None,
            )
            pending.addFile(self.table.file(added))
            if self.chance() and self.java.currentSnapshot() is not None:
                number = int(self.java.currentSnapshot().sequenceNumber())
                pending.dataSequenceNumber(number)
        return Change(
            "rewrite-files",
            pending,
            RewriteFiles(
                tuple(map(RemovedFile.of, removed)), tuple(map(RemovedFile.of, removed_deletes)), number
            ),
        )

    def cherry_pick(self) -> Change | None:
        """Stage a snapshot, to be picked later."""
        if self.base() is None:
            return None
        known = {snapshot.snapshot_id for snapshot in self.table.metadata().snapshots}
        staged = self.append if self.chance(0.3) else self.replace_partitions
        made = staged()
        if made is None:
            return None
        made.pending.stageOnly()
        try:
            commit(made.pending)
        except Refused:
            return None
        (new,) = {snapshot.snapshot_id for snapshot in self.table.metadata().snapshots} - known
        pick = self.java.manageSnapshots().cherrypick
        return Change(
            f"cherry-pick of {made.name}", _Late(lambda: pick(new)), CherryPickOperation(SnapshotId(new))
        )

    def concurrently(self) -> str:
        """Commit a random change, or roll back; return what it was."""
        snapshot = self.java.currentSnapshot()
        if self.chance(0.05) and snapshot is not None and snapshot.parentId() is not None:
            commit(self.java.manageSnapshots().rollbackTo(snapshot.parentId()))
            return "rollback"
        while True:
            made = self.change()
            try:
                commit(made.pending)
            except Refused:
                continue
            self.java.refresh()
            return made.name


@dataclass(frozen=True, slots=True)
class _Late:
    """A pending change that is only made when it is committed: picks look at the table as they are made."""

    make: Callable[[], Any]

    def commit(self) -> None:
        self.make().commit()
