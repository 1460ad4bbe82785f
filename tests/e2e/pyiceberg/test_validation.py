"""Commits that PyIceberg has prepared, judged before they are sent; and what it makes of a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table, TableIdentifier, Transaction
from pyiceberg.types import LongType, NestedField, StringType

ARROW = pa.schema([pa.field("id", pa.int64()), pa.field("word", pa.string())])
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "word", StringType()))
NO_RETRIES = {"commit.retry.num-retries": "0"}


def rows(*given: tuple[int, str]) -> pa.Table:
    columns = {"id": [number for number, _ in given], "word": [word for _, word in given]}
    return pa.table(columns, schema=ARROW)


@pytest.fixture
def table(catalog: RestCatalog, namespace: str) -> Table:
    made: Table = catalog.create_table((namespace, "t"), SCHEMA, properties=NO_RETRIES)
    made.append(rows((1, "a"), (2, "b")))
    return made


@pytest.fixture
def curl(catalog: RestCatalog, namespace: str) -> Iterator[httpx.Client]:
    """Calls below the table's path."""
    with httpx.Client(
        base_url=f"{catalog.uri}/v1/default/namespaces/{namespace}/tables",
        headers={"Content-Type": "application/json"},
        timeout=60,
    ) as client:
        yield client


def body_of(transaction: Transaction, namespace: str) -> str:
    """Return what PyIceberg sends to commit a transaction."""
    request = CommitTableRequest(
        identifier=TableIdentifier(namespace=[namespace], name="t"),
        updates=transaction._updates,
        requirements=transaction._requirements,
    )
    return str(request.model_dump_json())


def judged(curl: httpx.Client, body: str) -> dict[str, Any]:
    response = curl.post("t/validate", content=body)
    assert response.status_code == 200, response.text
    verdict: dict[str, Any] = response.json()
    return verdict


def test_append_would_land_and_then_lands(table: Table, curl: httpx.Client, namespace: str) -> None:
    transaction = table.transaction()
    transaction.append(rows((3, "c")))

    verdict = judged(curl, body_of(transaction, namespace))
    unchanged = curl.get("t").json()["metadata-location"]
    transaction.commit_transaction()

    assert verdict["would-commit"] is True
    assert verdict["guard"] == []
    assert unchanged == verdict["metadata-location"]
    assert [item["result"] for item in verdict["updates"]] == ["applied"] * len(verdict["updates"])
    made = table.refresh().current_snapshot()
    assert made is not None
    assert verdict["difference"]["metadata"]["snapshots-added"] == [made.snapshot_id]
    assert verdict["difference"]["metadata"]["refs"]["main"]["to"]["snapshot-id"] == made.snapshot_id
    assert [item["conflicts"]["would-conflict"] for item in verdict["snapshots"]] == [False]


def test_stale_append_would_be_refused_and_says_that_it_can_be_put_on_top(
    table: Table, curl: httpx.Client, namespace: str
) -> None:
    transaction = table.transaction()
    transaction.append(rows((3, "c")))
    other = table.catalog.load_table((namespace, "t"))
    other.append(rows((4, "d")))

    verdict = judged(curl, body_of(transaction, namespace))
    refused = curl.post("t", content=body_of(transaction, namespace))

    assert verdict["would-commit"] is False
    assert refused.status_code == verdict["error"]["code"] == 409
    assert refused.json() == {"error": {**verdict["error"], "conflict": verdict["conflict"]}}
    winner = other.refresh().current_snapshot()
    assert winner is not None
    assert [item["snapshot-id"] for item in verdict["conflict"]["snapshots"]] == [winner.snapshot_id]
    [report] = [item["conflicts"] for item in verdict["snapshots"]]
    assert (report["would-conflict"], report["safe-to-reapply"]) == (False, True)


def test_stale_delete_of_rows_that_are_gone_collides(
    table: Table, curl: httpx.Client, namespace: str
) -> None:
    transaction = table.transaction()
    transaction.delete("id = 1")
    table.catalog.load_table((namespace, "t")).delete("id = 2")

    verdict = judged(curl, body_of(transaction, namespace))

    reports = [item["conflicts"] for item in verdict["snapshots"]]
    assert verdict["would-commit"] is False
    assert [report["would-conflict"] for report in reports] == [True]
    assert [report["safe-to-reapply"] for report in reports] == [False]
    assert all(conflict["message"] for report in reports for conflict in report["conflicts"])


def test_pyiceberg_reads_a_refusal_as_it_always_did(table: Table, namespace: str) -> None:
    """What stands beside the error changes neither the exception nor its words."""
    table.catalog.load_table((namespace, "t")).update_schema().add_column("first", LongType()).commit()

    with pytest.raises(CommitFailedException) as caught:
        table.update_schema().add_column("second", LongType()).commit()

    assert str(caught.value).startswith("CommitFailedException: Requirement failed: ")
    assert "changed: expected id" in str(caught.value)
    assert "conflict" not in str(caught.value)


def test_schema_change_is_told_column_by_column(table: Table, curl: httpx.Client, namespace: str) -> None:
    transaction = table.transaction()
    with transaction.update_schema() as update:
        update.add_column("weight", LongType())

    verdict = judged(curl, body_of(transaction, namespace))

    assert verdict["difference"]["schema-changes"] == [
        {"change": "column-added", "field-id": 3, "name": "weight", "type": "long", "required": False}
    ]
