"""Properties as they are in force, over HTTP, and what is refused."""

from __future__ import annotations

from typing import Any

import httpx

from tests.builders.http_catalog import error_of, make_table, set_properties


def properties_of(api: httpx.Client, ns: str) -> dict[str, dict[str, Any]]:
    answer = api.get(f"/v1/namespaces/{ns}/tables/t/properties")
    assert answer.status_code == 200, answer.text
    return {item["name"]: item for item in answer.json()["properties"]}


def test_each_value_comes_with_its_origin(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(owner="me", **{"gc.enabled": "false"}))
    inherited = {"icetower.maintenance": "recommended", "write.format.default": "orc"}
    api.post(
        f"/v1/namespaces/{ns}/properties", json={"removals": [], "updates": inherited}
    ).raise_for_status()

    found = properties_of(api, ns)

    assert found["icetower.maintenance"]["origin"] == "namespace"
    assert found["icetower.maintenance"]["value"] == "recommended"
    assert found["write.format.default"] == {
        "name": "write.format.default",
        "origin": "default",
        "known": True,
        "value": "parquet",
        "type": "parquet, avro or orc",
        "group": "write",
        "meaning": "Format of data files.",
        "default": "parquet",
    }
    assert found["gc.enabled"]["origin"] == "table"
    assert found["owner"] == {"name": "owner", "origin": "table", "known": False, "value": "me"}


def test_table_that_is_not_there(api: httpx.Client, ns: str) -> None:
    answer = api.get(f"/v1/namespaces/{ns}/tables/none/properties")

    assert error_of(answer)[:2] == (404, "NoSuchTableException")


def test_namespace_refuses_nonsense_that_its_tables_would_inherit(api: httpx.Client, ns: str) -> None:
    updates = {"icetower.maintenance": "always", "comment": "x"}
    answer = api.post(f"/v1/namespaces/{ns}/properties", json={"removals": [], "updates": updates})
    made = api.post("/v1/namespaces", json={"namespace": [f"{ns}2"], "properties": updates})

    for refused in (answer, made):
        assert error_of(refused) == (
            400,
            "BadRequestException",
            "Namespace property icetower.maintenance must be off or recommended, found 'always'",
        )
    assert "comment" not in api.get(f"/v1/namespaces/{ns}").json()["properties"]


def test_misspelled_names_of_our_own_are_refused_everywhere(api: httpx.Client, ns: str) -> None:
    wrong = {"icetower.protectd": "true"}
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    made = api.post(f"/v1/namespaces/{ns}/tables", json={"name": "t", "schema": schema})
    assert made.status_code == 200
    update = {"action": "set-properties", "updates": wrong}
    refused = {
        "Table": [
            api.post(
                f"/v1/namespaces/{ns}/tables", json={"name": "u", "schema": schema, "properties": wrong}
            ),
            api.post(f"/v1/namespaces/{ns}/tables/t", json={"requirements": [], "updates": [update]}),
        ],
        "Namespace": [api.post(f"/v1/namespaces/{ns}/properties", json={"updates": wrong})],
        "Warehouse": [
            api.patch("/management/v1/warehouses/default", json={"updates": {f"{place}-properties": wrong}})
            for place in ("default", "override")
        ],
    }

    for what, answers in refused.items():
        for answer in answers:
            status, _, message = error_of(answer)
            assert status == 400
            assert message.endswith(
                f"{what} property icetower.protectd is not known; did you mean icetower.protected?"
            )
    assert [each["name"] for each in api.get(f"/v1/namespaces/{ns}/tables").json()["identifiers"]] == ["t"]
    assert "icetower.protectd" not in properties_of(api, ns)
