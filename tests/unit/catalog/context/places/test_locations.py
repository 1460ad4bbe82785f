"""Where new tables go: to the folder of their name if it is free, and never into one that is, or was, another's."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.database.deletions.file_deletions import FileDeletions
from app.database.pointers.pointers import Pointers
from tests.builders.http_catalog import SCHEMA, error_of, http_catalog, make_namespace
from tests.builders.staged_tables import land
from tests.builders.tables import view_version

VERSION = view_version().to_object()
URL = "/management/v1/warehouses"
UNIQUE = {"icetower.table-locations": "unique"}


def new_table(api: httpx.Client, namespace: str, name: str, **more: Any) -> str:
    body = {"name": name, "schema": SCHEMA, **more}
    made = api.post(f"/v1/wh/namespaces/{namespace}/tables", json=body).raise_for_status()
    location: str = made.json()["metadata"]["location"]
    return location.rpartition("/wh/")[2]


def stage(api: httpx.Client, namespace: str, name: str) -> dict[str, Any]:
    body = {"name": name, "schema": SCHEMA, "stage-create": True}
    staged = api.post(f"/v1/wh/namespaces/{namespace}/tables", json=body).raise_for_status().json()
    metadata: dict[str, Any] = staged["metadata"]
    return metadata


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"file://{tmp_path}/wh"


@pytest.fixture
def api(tmp_path: Path, root: str) -> Any:
    with http_catalog(tmp_path) as api:
        body = {"name": "wh", "root-location": root}
        api.post(URL, json=body).raise_for_status()
        for levels in (["a"], ["a", "b"], ["a b"]):
            api.post("/v1/wh/namespaces", json={"namespace": levels}).raise_for_status()
        yield api


def test_a_warehouse_may_want_folders_that_are_never_used_again(api: httpx.Client) -> None:
    api.patch(f"{URL}/wh", json={"default-properties": UNIQUE}).raise_for_status()

    assert new_table(api, "a", "t").startswith("a/t-")


def test_plain_path_is_used_where_nothing_is(api: httpx.Client) -> None:
    assert new_table(api, "a", "t") == "a/t"
    assert new_table(api, "a%1Fb", "c") == "a/b/c"
    assert new_table(api, "a", "staged", **{"stage-create": True}) == "a/staged"


def test_folder_of_an_earlier_table_is_not_used_again(api: httpx.Client) -> None:
    new_table(api, "a", "dropped")
    api.delete("/v1/wh/namespaces/a/tables/dropped").raise_for_status()
    new_table(api, "a", "renamed")
    source, destination = ({"namespace": ["a"], "name": name} for name in ("renamed", "other"))
    api.post("/v1/wh/tables/rename", json={"source": source, "destination": destination}).raise_for_status()

    assert new_table(api, "a", "dropped").startswith("a/dropped-")
    assert new_table(api, "a", "renamed").startswith("a/renamed-")


def test_folder_inside_or_around_another_tables_is_not_used(api: httpx.Client) -> None:
    new_table(api, "a%1Fb", "c")
    around = new_table(api, "a", "b")
    api.post("/v1/wh/namespaces", json={"namespace": ["a", "t"]}).raise_for_status()
    new_table(api, "a", "t")
    inside = new_table(api, "a%1Ft", "x")

    assert re.fullmatch("a/b-[0-9a-f]{8}", around)
    assert re.fullmatch("a/t-[0-9a-f]{8}/x", inside), "beside the other table's folder"


def test_staged_table_keeps_the_folder_that_it_was_given_or_is_refused(api: httpx.Client, root: str) -> None:
    staged, late = (stage(api, *where) for where in (("a", "b"), ("a%1Fb", "c")))
    assert (staged["location"], late["location"]) == (f"{root}/a/b", f"{root}/a/b/c")

    landed, refused = (
        land(api, where, name, metadata, "/v1/wh")
        for where, name, metadata in (("a", "b", staged), ("a%1Fb", "c", late))
    )

    assert landed.json()["metadata"]["location"] == f"{root}/a/b"
    assert error_of(refused)[0] == 409
    assert error_of(refused)[2] == (
        f"Cannot create a.b.c: its location {root}/a/b/c was free when it was staged and belongs to another table by "
        "now; create it anew, and it gets another location"
    )
    assert re.fullmatch(f"{root}/a/b-[0-9a-f]{{8}}/c", stage(api, "a%1Fb", "c")["location"])


def test_table_that_lands_around_the_folder_while_it_is_chosen_does_not_get_another_inside(
    api: httpx.Client, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a third table fill the plain folder; what is around it lands right after that was seen."""
    around = stage(api, "a", "b")
    (tmp_path / "wh" / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "wh" / "a" / "b" / "c" / "x.parquet").write_bytes(b"")
    taken_of = Pointers.taken_of

    def land_after(self: Pointers, folders: Collection[str]) -> frozenset[str]:
        seen = taken_of(self, folders)
        monkeypatch.undo()
        land(api, "a", "b", around, "/v1/wh").raise_for_status()
        return seen

    monkeypatch.setattr(Pointers, "taken_of", land_after)
    inside = new_table(api, "a%1Fb", "c")

    assert around["location"] == f"{root}/a/b"
    assert re.fullmatch("a/b-[0-9a-f]{8}/c", inside)


def test_folder_of_a_table_that_is_being_purged_has_no_new_one_inside(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        FileDeletions, "lease", lambda *_arguments, **_options: None
    )  # It may be over too soon.
    new_table(api, "a", "b")
    api.delete("/v1/wh/namespaces/a/tables/b?purgeRequested=true").raise_for_status()

    assert re.fullmatch("a/b-[0-9a-f]{8}/c", new_table(api, "a%1Fb", "c"))


def test_table_around_the_whole_warehouse_leaves_room_for_others(api: httpx.Client, root: str) -> None:
    new_table(api, "a", "around", location=root)

    assert new_table(api, "a", "t").startswith("a/t-")
    assert new_table(api, "a%1Fb", "t").startswith("a/b/t-")


def test_location_that_a_client_brings_is_its_own_affair(api: httpx.Client, root: str) -> None:
    new_table(api, "a", "b")

    assert new_table(api, "a", "inside", location=f"{root}/a/b/c") == "a/b/c"
    assert new_table(api, "a", "same", location=f"{root}/a/b") == "a/b"


def test_views_have_folders_of_their_own_too(api: httpx.Client, root: str) -> None:
    body = {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}}
    made = api.post("/v1/wh/namespaces/a/views", json=body).raise_for_status()
    api.post("/v1/wh/namespaces", json={"namespace": ["a", "v"]}).raise_for_status()

    assert made.json()["metadata"]["location"] == f"{root}/a/v"
    assert re.fullmatch("a/v-[0-9a-f]{8}/t", new_table(api, "a%1Fv", "t"))


def test_files_of_others_and_odd_names_get_the_longer_name(api: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "wh" / "a" / "foreign" / "data").mkdir(parents=True)
    (tmp_path / "wh" / "a" / "foreign" / "data" / "x.parquet").write_bytes(b"")

    assert new_table(api, "a", "foreign").startswith("a/foreign-")
    assert new_table(api, "a", "x y").startswith("a/x_y-")
    assert new_table(api, "a%20b", "t").startswith("a_b/t-")


def test_other_values_are_refused(api: httpx.Client) -> None:
    refused = api.patch(f"{URL}/wh", json={"override-properties": {"icetower.table-locations": "short"}})

    assert error_of(refused)[2] == (
        "Warehouse property icetower.table-locations must be unique or plain, found 'short'"
    )


@pytest.mark.parametrize("staged", [False, True])
def test_path_without_a_scheme_lies_in_the_warehouses_bucket(tmp_path: Path, staged: bool) -> None:
    with http_catalog(tmp_path, default_warehouse_location="memory://lake/wh") as api:
        make_namespace(api, "a")
        body = {"name": "t", "schema": SCHEMA, "location": "/wh/a/t/", "stage-create": staged}
        made = api.post("/v1/namespaces/a/tables", json=body).raise_for_status().json()

    assert made["metadata"]["location"] == "memory://lake/wh/a/t"


@pytest.mark.parametrize("location", ["/lake/wh/a/t", "/a/t", "//lake/wh/a/t", "/wh/../b", "/wh2/t"])
def test_path_without_a_scheme_that_would_lie_outside_is_refused(tmp_path: Path, location: str) -> None:
    with http_catalog(tmp_path, default_warehouse_location="memory://lake/wh") as api:
        make_namespace(api, "a")
        refused = api.post(
            "/v1/namespaces/a/tables", json={"name": "t", "schema": SCHEMA, "location": location}
        )

    assert error_of(refused)[0] == 400
    assert f"Invalid location '{location}'" in error_of(refused)[2]


def test_path_without_a_scheme_is_a_local_file_where_those_are_allowed(tmp_path: Path) -> None:
    with http_catalog(
        tmp_path, default_warehouse_location="memory://lake/wh", allow_external_locations=True
    ) as api:
        make_namespace(api, "a")
        body = {"name": "t", "schema": SCHEMA, "location": f"{tmp_path}/wh/t"}
        made = api.post("/v1/namespaces/a/tables", json=body).raise_for_status().json()

    assert made["metadata"]["location"] == f"{tmp_path}/wh/t"


def test_a_table_that_is_there_keeps_a_place_that_no_new_one_is_given(
    api: httpx.Client, root: str, tmp_path: Path
) -> None:
    made = api.post("/v1/wh/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}).raise_for_status()
    metadata = made.json()["metadata"] | {"location": f"{root}/C#/t", "table-uuid": str(UUID(int=5))}
    file = tmp_path / "wh/C#/t/metadata/00001-5.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(metadata))

    body = {"name": "there", "metadata-location": f"file://{file}"}
    registered = api.post("/v1/wh/namespaces/a/register", json=body)
    changed = api.post(
        "/v1/wh/namespaces/a/tables/there",
        json={"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]},
    )
    refused = api.post(
        "/v1/wh/namespaces/a/tables", json={"name": "new", "schema": SCHEMA, "location": f"{root}/C#/new"}
    )

    assert (registered.status_code, changed.status_code, refused.status_code) == (200, 200, 400)
