"""The description of the API as it is served."""

from __future__ import annotations

import httpx
import yaml


def test_description_is_the_same_in_both_forms(api: httpx.Client) -> None:
    written, parsed = api.get("/openapi.yaml"), api.get("/openapi.json")

    assert written.headers["content-type"] == "application/yaml"
    assert parsed.json()["info"]["title"] == "Icetower"
    # A status such as 200 is quoted in the file; JSON has no other kind of key.
    assert parsed.json() == yaml.safe_load(written.text)


def test_page_names_every_operation_and_loads_nothing(api: httpx.Client) -> None:
    page = api.get("/docs")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for item in api.get("/openapi.json").json()["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict):
                assert f"id='{operation['operationId']}'" in page.text
    assert "<script" not in page.text
    assert "src=" not in page.text


def test_frameworks_own_pages_are_gone(api: httpx.Client) -> None:
    assert api.get("/redoc").status_code == 404
    assert api.get("/docs/oauth2-redirect").status_code == 404
