"""The past over HTTP."""

from __future__ import annotations

import uuid
from pathlib import Path

import httpx

from tests.builders.http_catalog import make_table, set_properties


def test_restoration_that_is_sent_again_is_answered_from_what_was_recorded(
    api: httpx.Client, ns: str
) -> None:
    """Not from the metadata of then, which may be gone by now."""
    then = Path(make_table(api, ns, "t")["metadata-location"].removeprefix("file://"))
    job = {"job": "expire-snapshots"}
    at = api.post(f"/v1/namespaces/{ns}/tables/t/maintenance/jobs", json=job).json()["began-ms"]
    body = {"at": str(at), "tables": [{"namespace": [ns], "name": "t"}]}
    api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(k="1")).raise_for_status()
    key = {"idempotency-key": str(uuid.uuid4())}

    done = api.post("/v1/restore", json=body, headers=key)
    api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(k="2")).raise_for_status()
    then.unlink()
    again = api.post("/v1/restore", json=body, headers=key)

    assert done.status_code == 200, done.text
    assert (again.status_code, again.content) == (200, done.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert api.get(f"/v1/namespaces/{ns}/tables/t").json()["metadata"]["properties"]["k"] == "2"
