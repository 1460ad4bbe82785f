"""PyIceberg and curl on a warehouse of layout hadoop: what works works, what cannot is a clear refusal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField

from tests.builders.folders import files_below
from tests.e2e.patience import wait_until

NUMBERS = Schema(NestedField(1, "id", LongType()))


@pytest.fixture
def files(catalog: RestCatalog, namespace: str, tmp_path: Path) -> RestCatalog:
    """A warehouse of layout hadoop with the namespace `shop`."""
    settings = {"name": f"files-of-{namespace}", "root-location": f"file://{tmp_path}", "layout": "hadoop"}
    made = httpx.post(f"{catalog.uri}/management/v1/warehouses", json=settings).raise_for_status()
    assert made.json()["layout"] == "hadoop"
    found = RestCatalog("files", uri=catalog.uri, warehouse=settings["name"])
    found.create_namespace("shop")
    return found


def path_of(files: RestCatalog, rest: str) -> str:
    return f"{files.uri}/v1/{files.properties['prefix']}{rest}"


def error_of(answer: httpx.Response) -> str:
    assert answer.status_code == 400, answer.text
    message: str = answer.json()["error"]["message"]
    return message


def test_a_table_lives_in_its_folder(files: RestCatalog, tmp_path: Path) -> None:
    table = files.create_table("shop.numbers", NUMBERS)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.overwrite(pa.table({"id": [7]}), "id = 2")
    with table.update_schema() as change:
        change.add_column("note", LongType())
    table.manage_snapshots().create_tag(table.metadata.snapshots[0].snapshot_id, "first").commit()

    assert sorted(files.load_table("shop.numbers").scan().to_arrow()["id"].to_pylist()) == [1, 3, 7]
    assert (
        files.load_table("shop.numbers").scan(snapshot_id=table.metadata.snapshots[0].snapshot_id).to_arrow()
    )
    by_itself = StaticTable.from_metadata(f"{tmp_path}/shop/numbers")
    assert sorted(by_itself.scan().to_arrow()["id"].to_pylist()) == [1, 3, 7]
    folder = tmp_path / "shop" / "numbers" / "metadata"
    numbers = sorted(int(path.name[1:].split(".")[0]) for path in folder.glob("v*.metadata.json"))
    assert numbers == list(range(1, numbers[-1] + 1))
    assert (folder / "version-hint.text").read_text() == str(numbers[-1])
    assert files.list_tables("shop") == [("shop", "numbers")]
    with pytest.raises(TableAlreadyExistsError):
        files.create_table("shop.numbers", NUMBERS)
    files.purge_table("shop.numbers")
    assert not (tmp_path / "shop" / "numbers").exists()
    with pytest.raises(NoSuchTableError):
        files.load_table("shop.numbers")


def test_a_table_is_created_in_one_step_with_its_rows(files: RestCatalog) -> None:
    with files.create_table_transaction("shop.staged", NUMBERS) as creation:
        creation.append(pa.table({"id": [1, 2]}))

    assert files.load_table("shop.staged").scan().to_arrow().num_rows == 2


def test_namespaces_are_folders(files: RestCatalog, tmp_path: Path) -> None:
    files.create_namespace("shop.north")
    (tmp_path / "by_hand").mkdir()

    assert sorted(files.list_namespaces()) == [("by_hand",), ("shop",)]
    assert files.list_namespaces("shop") == [("shop", "north")]
    assert (tmp_path / "shop" / "north").is_dir()
    with pytest.raises(NamespaceAlreadyExistsError):
        files.create_namespace("shop.north")
    with pytest.raises(NamespaceNotEmptyError):
        files.drop_namespace("shop")
    with pytest.raises(BadRequestError, match="namespaces are folders"):
        files.create_namespace("with_properties", {"a": "b"})
    files.drop_namespace("shop.north")
    with pytest.raises(NoSuchNamespaceError):
        files.list_tables("shop.north")


@pytest.mark.parametrize(
    ("method", "rest", "status"),
    [
        ("GET", "", 200),
        ("HEAD", "", 204),
        ("GET", "/snapshots", 200),
        ("GET", "/history", 200),
        ("GET", "/refs", 200),
        ("GET", "/refs/main", 200),
        ("GET", "/health", 200),
        ("GET", "/profile", 200),
        ("GET", "/properties", 200),
        ("GET", "/tower", 200),
        ("GET", "/snapshots/main/files", 200),
        ("POST", "/plan", 200),
        ("POST", "/validate", 200),
        ("POST", "/rewrite-manifests", 200),
        ("POST", "/remove-dangling-deletes", 200),
        ("GET", "/maintenance", 400),
        ("POST", "/orphans", 400),
        ("POST", "/unregister", 400),
        ("DELETE", "", 400),
    ],
)
def test_every_question_about_a_table_has_an_answer(
    files: RestCatalog, method: str, rest: str, status: int
) -> None:
    table = files.create_table("shop.asked", NUMBERS)
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    target = path_of(files, f"/namespaces/shop/tables/asked{rest}")
    body = {"dry-run": True} if rest == "/orphans" else {}

    answer = httpx.post(target, json=body) if method == "POST" else httpx.request(method, target)

    assert answer.status_code == status, answer.text
    if status == 400:
        assert "layout hadoop" in answer.text or "file-system table" in answer.text
    assert len(files.load_table("shop.asked").scan().to_arrow()) == 3


def test_versions_are_known_by_their_numbers(files: RestCatalog) -> None:
    table = files.create_table("shop.compared", NUMBERS)
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2, 3]}))
    target = path_of(files, "/namespaces/shop/tables/compared/diff")

    answer = httpx.get(target, params={"from": "metadata:2", "to": "metadata:3"})

    assert answer.status_code == 200, answer.text
    assert answer.json()["added"]["rows"] == 2
    assert answer.json()["to"]["metadata-location"].endswith("/v3.metadata.json")
    unknown = httpx.get(target, params={"from": "metadata:7"})
    assert (unknown.status_code, "No version 7" in unknown.text) == (404, True)


def test_expiry_takes_snapshots_and_leaves_files(files: RestCatalog, tmp_path: Path) -> None:
    table = files.create_table("shop.old", NUMBERS)
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    path = path_of(files, "/namespaces/shop/tables/old/expire")
    wish = {"older-than-ms": 4_000_000_000_000, "retain-last": 1}
    before = sorted(tmp_path.rglob("*.avro"))

    assert "cleanup none" in error_of(httpx.post(path, json=wish))
    assert "cleanup none" in error_of(httpx.post(path, json={**wish, "dry-run": True}))
    done = httpx.post(path, json={**wish, "cleanup": "none"})

    assert done.status_code == 200, done.text
    assert len(files.load_table("shop.old").metadata.snapshots) == 1
    assert sorted(tmp_path.rglob("*.avro")) == before


def test_what_names_cannot_do_is_refused(files: RestCatalog) -> None:
    files.create_table("shop.a", NUMBERS)
    files.create_table("shop.b", NUMBERS)
    rename = {
        "source": {"namespace": ["shop"], "name": "a"},
        "destination": {"namespace": ["shop"], "name": "c"},
    }
    updates = [{"action": "set-properties", "updates": {"x": "y"}}]
    changes: list[dict[str, Any]] = [
        {
            "identifier": {"namespace": ["shop"], "name": name},
            "requirements": [],
            "updates": updates,
        }
        for name in ("a", "b")
    ]
    whole = {"table-changes": changes}
    view = {
        "name": "v",
        "schema": {"type": "struct", "schema-id": 0, "fields": []},
        "view-version": {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
            "default-namespace": ["shop"],
        },
        "properties": {},
    }

    assert "the name is the folder" in error_of(httpx.post(path_of(files, "/tables/rename"), json=rename))
    for rest in ("/transactions/commit", "/transactions/validate"):
        assert "several tables together" in error_of(httpx.post(path_of(files, rest), json=whole))
    assert "create a view" in error_of(httpx.post(path_of(files, "/namespaces/shop/views"), json=view))
    assert httpx.get(path_of(files, "/namespaces/shop/views")).json()["identifiers"] == []
    assert "x" not in files.load_table("shop.a").properties


def test_what_only_rows_keep_is_refused(files: RestCatalog) -> None:
    files.create_table("shop.a", NUMBERS)
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    past = f"{files.uri}/v1/{files.properties['prefix']}@{moment}/namespaces"

    assert "TIMESTAMP AS OF" in error_of(httpx.get(past))
    assert "drop deletes the table's folder" in error_of(httpx.get(path_of(files, "/dropped")))
    wanted = {"namespace": ["shop"], "name": "a"}
    for rest in ("/undrop", "/dropped/purge"):
        assert "icetower.protected=true" in error_of(httpx.post(path_of(files, rest), json=wanted))
    assert "table diff" in error_of(httpx.get(path_of(files, f"/diff?from={moment}")))
    restore = {"tables": [wanted], "at": moment}
    assert "table rollback" in error_of(httpx.post(path_of(files, "/restore"), json=restore))


@pytest.mark.parametrize("name", ["..%2F..%2Fetc", "%2E%2E", "a%2Fb", "%252e%252e", "a%5Cb"])
def test_no_name_leads_out_of_the_root(files: RestCatalog, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))

    for method, rest in (
        ("GET", f"/namespaces/shop/tables/{name}"),
        ("DELETE", f"/namespaces/shop/tables/{name}?purgeRequested=true"),
        ("GET", f"/namespaces/{name}"),
        ("GET", f"/namespaces/{name}/tables"),
        ("DELETE", f"/namespaces/{name}"),
    ):
        answer = httpx.request(method, path_of(files, rest))
        assert answer.status_code in (400, 404), (method, rest, answer.text)
    assert sorted(tmp_path.rglob("*")) == before


def test_warehouses_are_of_a_known_layout_and_keep_it(
    catalog: RestCatalog, namespace: str, tmp_path: Path
) -> None:
    url = f"{catalog.uri}/management/v1/warehouses"
    good = {"name": f"w-{namespace}", "root-location": f"file://{tmp_path}"}

    assert "layout" in error_of(httpx.post(url, json={**good, "layout": "nessie"}))
    for root in ("gs://bucket/x", "abfss://c@account.dfs.core.windows.net/x"):
        wrong = {**good, "root-location": root, "layout": "hadoop"}
        assert "only if it is absent" in error_of(httpx.post(url, json=wrong))
    assert httpx.get(f"{url}/{good['name']}").status_code == 404
    assert httpx.post(url, json=good).json()["layout"] == "catalog"
    changed = httpx.patch(f"{url}/{good['name']}", json={"layout": "hadoop"})
    assert changed.status_code == 400 or changed.json()["layout"] == "catalog"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "t"}, "location"),
        ({"location": "file:///x"}, "name"),
        ({"name": "", "location": "file:///x"}, "empty"),
        ({"name": "t", "location": "file:///etc"}, "outside warehouse"),
        ({"name": "t", "location": 7}, "location"),
        ([], "object"),
    ],
)
def test_bad_adoptions_say_what_is_wrong(
    catalog: RestCatalog, namespace: str, body: dict[str, Any], words: str
) -> None:
    answer = httpx.post(f"{catalog.uri}/v1/namespaces/{namespace}/adopt", json=body)

    assert words in error_of(answer)
    assert catalog.list_tables(namespace) == []


def test_a_file_that_a_file_system_table_names_outlives_its_own_table(
    catalog: RestCatalog, namespace: str, tmp_path: Path
) -> None:
    """No row says that the second table names it: deletions look at the warehouses of layout hadoop."""
    url = f"{catalog.uri}/management/v1/warehouses"
    lake, tree = f"lake-{namespace}", f"tree-{namespace}"
    httpx.post(url, json={"name": lake, "root-location": f"file://{tmp_path}/lake"}).raise_for_status()
    settings = {"name": tree, "root-location": f"file://{tmp_path}", "layout": "hadoop"}
    httpx.post(url, json=settings).raise_for_status()
    rows = RestCatalog("rows", uri=catalog.uri, warehouse=lake)
    files = RestCatalog("files", uri=catalog.uri, warehouse=tree)
    rows.create_namespace("shop")
    files.create_namespace("shop")
    first = rows.create_table("shop.first", NUMBERS)
    second = files.create_table("shop.second", NUMBERS)
    first.append(pa.table({"id": [1]}))
    first.append(pa.table({"id": [2]}))
    paths = [task.file.file_path.removeprefix("file:").lstrip("/") for task in first.scan().plan_files()]
    shared = Path("/", min(paths))
    second.add_files([f"file://{shared}"])

    rows.purge_table("shop.first")
    wait_until(lambda: files_below(tmp_path / "lake") == {shared})

    assert files.load_table("shop.second").scan().to_arrow().num_rows == 1
