"""The guard finds nothing wrong with what PyIceberg writes, and stops a PyIceberg that loses files."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.types import LongType, NestedField, StringType

from tests.e2e.guarding import watched

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "kind", StringType()))
GUARDED = {"icetower.guard": "reject"}


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": list(numbers), "kind": ["a" if number % 2 else "b" for number in numbers]})


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_pyiceberg_writes_is_sound(catalog: RestCatalog, namespace: str, version: str) -> None:
    properties = {**GUARDED, "format-version": version, "commit.manifest-merge.enabled": "true"}
    merging = {**properties, "commit.manifest.min-count-to-merge": "3"}

    with watched(catalog.uri) as seen:
        table: Table = catalog.create_table((namespace, "t"), SCHEMA, properties=merging)
        for number in range(8):
            table.append(rows(number, number + 100))
        table.delete("id = 3")
        table.overwrite(rows(50), overwrite_filter="id >= 100")
        table.append(rows(60))
        with table.transaction() as transaction:
            transaction.append(rows(70))
            transaction.append(rows(71))
            transaction.delete("id = 70")
        table.manage_snapshots().create_branch(table.metadata.current_snapshot_id, "side").commit()  # type: ignore[arg-type]  # there is one
        table.append(rows(80), branch="side")
        table.append(rows(81))
        if version == "2":
            table.upsert(rows(81, 82), join_cols=["id"])
        table.overwrite(rows(1))
        made = len(catalog.load_table(table.name()).metadata.snapshots)

    assert seen.findings == {}
    assert seen.snapshots == {"clean": made}
    assert made >= 16


def test_a_writer_that_forgets_the_parents_manifests_is_stopped_at_once(
    catalog: RestCatalog, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table: Table = catalog.create_table((namespace, "t"), SCHEMA, properties=GUARDED)
    table.append(rows(1, 2))
    table.append(rows(3))

    def forget(_self: object) -> list[ManifestFile]:
        return []

    monkeypatch.setattr(_FastAppendFiles, "_existing_manifests", forget)
    with (
        watched(catalog.uri) as seen,
        pytest.raises(BadRequestError, match="says append, but lacks 2 of the data files of its parent"),
    ):
        table.append(rows(4))

    assert seen.findings["dropped-files"] == 1
    monkeypatch.undo()
    again = catalog.load_table(table.name())
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    again.append(rows(4))
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
