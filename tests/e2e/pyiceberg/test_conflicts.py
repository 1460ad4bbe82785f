"""Two PyIceberg writers race: the catalog is asked first, and the writer's own commit ends as it was told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "word", StringType()))
BY_WORD = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "word"))
WORD_IS_A = {"type": "eq", "term": "word", "value": "a"}


def rows(*given: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [number for number, _ in given], "word": [word for _, word in given]})


def nothing(_table: Table) -> None:
    return None


def append_elsewhere(table: Table) -> None:
    table.append(rows((10, "b")))


def append_here(table: Table) -> None:
    table.append(rows((10, "a")))


def delete_elsewhere(table: Table) -> None:
    table.delete("word = 'b'")


def delete_here(table: Table) -> None:
    table.delete("word = 'a'")


def replace_here(table: Table) -> None:
    table.overwrite(rows((10, "a")), "word = 'a'")


def widen(table: Table) -> None:
    with table.update_schema() as change:
        change.add_column("more", StringType())


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize(
    "meanwhile",
    [nothing, append_elsewhere, append_here, delete_elsewhere, delete_here, replace_here, widen],
    ids=lambda what: what.__name__,
)
def test_overwrite(
    catalog: RestCatalog, namespace: str, meanwhile: Callable[[Table], None], isolation: str
) -> None:
    levels = {f"write.{kind}.isolation-level": isolation for kind in ("delete", "update", "merge")}
    made = catalog.create_table((namespace, "t"), SCHEMA, partition_spec=BY_WORD, properties=levels)
    made.append(rows((1, "a"), (2, "b")))
    base = made.current_snapshot()
    assert base is not None
    (here,) = (task.file.file_path for task in made.scan("word = 'a'").plan_files())
    stale: Table = catalog.load_table((namespace, "t"))
    meanwhile(catalog.load_table((namespace, "t")))

    told = ask(
        catalog,
        namespace,
        base.snapshot_id,
        kind="overwrite",
        isolation=isolation,
        **{"filter": WORD_IS_A, "row-filter": WORD_IS_A, "removed-data-files": [here]},
    )
    try:
        stale.overwrite(rows((20, "a")), "word = 'a'")
        has_landed = True
    except (ValidationException, CommitFailedException):
        has_landed = False

    assert told["would-conflict"] is not has_landed, told
    assert told["safe-to-reapply"] is has_landed
    assert bool(told["conflicts"]) is not has_landed


def ask(catalog: RestCatalog, namespace: str, base: int, **operation: Any) -> Any:
    response = httpx.post(
        f"{catalog.uri}/v1/namespaces/{namespace}/tables/t/conflicts",
        json={"base-snapshot-id": base, "operation": operation},
        timeout=60,
    )
    assert response.status_code == 200, response.text
    return response.json()
