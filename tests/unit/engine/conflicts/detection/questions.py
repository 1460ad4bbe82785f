"""What the tests in this folder ask about, and how."""

from __future__ import annotations

from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import (
    Operation,
    Overwrite,
    RemovedFile,
)
from app.engine.conflicts.report import ConflictReport
from app.engine.expressions.expressions import Expression
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.files.manifests import DataFile
from app.engine.model.ids import SnapshotId, SpecId
from tests.builders.branches import (
    Branch,
    data_file,
)
from tests.builders.filters import predicate

OLD = data_file("old", "a", (0, 9))
OTHER = data_file("other", "b", (10, 19))
KIND_A = predicate(Ask.EQ, "kind", "a")
HIGH = predicate(Ask.GT, "id", 50)
A = (SpecId(0), ("a",))


def ask(branch: Branch, base: SnapshotId | None, operation: Operation) -> ConflictReport:
    return detect_conflicts(branch.metadata, branch, "main", base, operation)


def kinds(report: ConflictReport) -> list[str]:
    return [conflict.kind.value for conflict in report.conflicts]


def removing(*files: DataFile) -> tuple[RemovedFile, ...]:
    return tuple(map(RemovedFile.of, files))


def overwrite(read: Expression | None = KIND_A, *removed: DataFile, new_data: bool = True) -> Overwrite:
    return Overwrite(
        conflict_filter=read,
        removed_files=removing(*(removed or (OLD,))),
        checks_new_data=new_data,
        checks_new_deletes=True,
    )
