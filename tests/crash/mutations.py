"""Every mutation of the HTTP API, as requests that a test sends and breaks off."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.builders.http_catalog import SCHEMA, VIEW_VERSION, set_properties
from tests.builders.staged_tables import creation
from tests.crash.ground import Ground, Request, view_body

OLD_MS: Final = 4_000_000_000_000
NO_SNAPSHOT: Final = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}


def create_table(on: Ground) -> Request:
    return Request("POST", f"{on.path}/tables", {"name": "t", "schema": SCHEMA})


def create_staged(on: Ground) -> Request:
    staged = on.do("POST", f"{on.path}/tables", {"name": "t", "schema": SCHEMA, "stage-create": True})
    return Request("POST", f"{on.path}/tables/t", creation(staged["metadata"]))


def _let_go(on: Ground, kind: str, name: str) -> str:
    gone = on.do("POST", f"{on.path}/{kind}/{name}/unregister")
    location: str = gone["metadata-location"]
    return location


def register_table(on: Ground) -> Request:
    on.table()
    on.append()
    return Request(
        "POST", f"{on.path}/register", {"name": "u", "metadata-location": _let_go(on, "tables", "t")}
    )


def register_over(on: Ground) -> Request:
    on.table()
    on.append()
    on.table("u")
    body = {"name": "u", "metadata-location": _let_go(on, "tables", "t"), "overwrite": True}
    return Request("POST", f"{on.path}/register", body)


def register_view(on: Ground) -> Request:
    on.view()
    return Request(
        "POST", f"{on.path}/register-view", {"name": "u", "metadata-location": _let_go(on, "views", "v")}
    )


def commit_properties(on: Ground) -> Request:
    on.table()
    return Request("POST", f"{on.path}/tables/t", set_properties(a="b"))


def commit_snapshot(on: Ground) -> Request:
    on.table()
    on.append()
    return Request("POST", f"{on.path}/tables/t", on.snapshot())


def commit_over_many(on: Ground) -> Request:
    """A commit after which the oldest metadata file goes."""
    on.table(
        **{"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}
    )
    on.append(times=2)
    return Request("POST", f"{on.path}/tables/t", on.snapshot())


def commit_rebased(on: Ground) -> Request:
    on.table(**{"icetower.rebase": "appends"})
    on.append()
    late = on.snapshot()
    on.append()
    return Request("POST", f"{on.path}/tables/t", late)


def append_files(on: Ground) -> Request:
    on.table()
    on.append()
    return Request("POST", f"{on.path}/tables/t/append", {"files": [{"file-path": on.parquet()}]})


def transaction(on: Ground) -> Request:
    on.table("a")
    on.table("b")
    on.table("c")
    created = create_staged(on)
    changes = [
        {"identifier": {"namespace": [on.ns], "name": name}} | body
        for name, body in (
            ("a", set_properties(a="b")),
            ("b", on.snapshot("b")),
            (
                "c",
                {
                    "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
                    "updates": [],
                },
            ),
            ("t", created.body or {}),
        )
    ]
    return Request("POST", "/v1/transactions/commit", {"table-changes": changes})


def rename_table(on: Ground) -> Request:
    on.table()
    names = {
        "source": {"namespace": [on.ns], "name": "t"},
        "destination": {"namespace": [on.ns], "name": "u"},
    }
    return Request("POST", "/v1/tables/rename", names)


def drop_table(on: Ground) -> Request:
    on.table()
    on.append()
    return Request("DELETE", f"{on.path}/tables/t")


def purge_table(on: Ground) -> Request:
    on.table()
    on.append()
    return Request("DELETE", f"{on.path}/tables/t?purgeRequested=true")


def undrop_table(on: Ground) -> Request:
    drop = drop_table(on)
    on.do(drop.method, drop.path)
    return Request("POST", "/v1/undrop", {"namespace": [on.ns], "name": "t"})


def undrop_with_namespace(on: Ground) -> Request:
    drop = drop_table(on)
    on.do(drop.method, drop.path)
    body = {
        "namespace": [on.ns],
        "name": "t",
        "as": {"namespace": [on.ns, "inner", "most"], "name": "u"},
        "create-namespace": True,
    }
    return Request("POST", "/v1/undrop", body)


def undrop_registered(on: Ground) -> Request:
    register = register_table(on)
    on.do(register.method, register.path, register.body)
    on.do("DELETE", f"{on.path}/tables/u")
    return Request("POST", "/v1/undrop", {"namespace": [on.ns], "name": "u"})


def undrop_namespace(on: Ground) -> Request:
    on.do("POST", "/v1/namespaces", {"namespace": [on.ns, "inner"], "properties": {"a": "b"}})
    on.do("DELETE", f"/v1/namespaces/{on.ns}%1Finner")
    return Request("POST", "/v1/undrop", {"namespace": [on.ns, "inner"]})


def purge_dropped(on: Ground) -> Request:
    drop = drop_table(on)
    on.do(drop.method, drop.path)
    return Request("POST", "/v1/dropped/purge", {"namespace": [on.ns], "name": "t"})


def restore(on: Ground) -> Request:
    for name in ("t", "u"):
        on.table(name)
        on.append(name)
    at = max(on.load(name).last_updated_ms for name in ("t", "u"))
    while int(time.time() * 1000) <= at + 1:
        time.sleep(0.001)
    for name in ("t", "u"):
        on.do("POST", f"{on.path}/tables/{name}", set_properties(a="b"))
    tables = [{"namespace": [on.ns], "name": name} for name in ("t", "u")]
    return Request("POST", "/v1/restore", {"at": str(at + 1), "tables": tables})


def create_view(on: Ground) -> Request:
    return Request("POST", f"{on.path}/views", view_body())


def replace_view(on: Ground) -> Request:
    on.view()
    version = VIEW_VERSION | {
        "version-id": 2,
        "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 2"}],
    }
    updates = [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return Request("POST", f"{on.path}/views/v", {"requirements": [], "updates": updates})


def rename_view(on: Ground) -> Request:
    on.view()
    names = {
        "source": {"namespace": [on.ns], "name": "v"},
        "destination": {"namespace": [on.ns], "name": "u"},
    }
    return Request("POST", "/v1/views/rename", names)


def drop_view(on: Ground) -> Request:
    on.view()
    return Request("DELETE", f"{on.path}/views/v")


def unregister_table(on: Ground) -> Request:
    on.table()
    on.append()
    return Request("POST", f"{on.path}/tables/t/unregister")


def unregister_unread(on: Ground) -> Request:
    on.table()
    return Request("POST", f"{on.path}/tables/t/unregister", headers={"X-Icetower-Unread": "true"})


def unregister_view(on: Ground) -> Request:
    on.view()
    return Request("POST", f"{on.path}/views/v/unregister")


def create_namespace(on: Ground) -> Request:
    return Request(
        "POST", "/v1/namespaces", {"namespace": [on.ns, "inner", "most"], "properties": {"a": "b"}}
    )


def change_namespace(on: Ground) -> Request:
    return Request("POST", f"{on.path}/properties", {"removals": [], "updates": {"a": "b"}})


def drop_namespace(on: Ground) -> Request:
    on.do("POST", "/v1/namespaces", {"namespace": [on.ns, "inner"], "properties": {"a": "b"}})
    return Request("DELETE", f"/v1/namespaces/{on.ns}%1Finner")


def expire(on: Ground) -> Request:
    on.table()
    on.append(times=3)
    body = {"older-than-ms": OLD_MS, "retain-last": 1, "grace-period-ms": 0}
    return Request("POST", f"{on.path}/tables/t/expire", body)


def rewrite_manifests(on: Ground) -> Request:
    on.table()
    on.append(times=3)
    return Request("POST", f"{on.path}/tables/t/rewrite-manifests", {"all": True})


def make_branch(on: Ground) -> Request:
    on.table()
    on.append(times=2)
    return Request("PUT", f"{on.path}/tables/t/refs/b", {})


def roll_back(on: Ground) -> Request:
    on.table()
    on.append(times=2)
    return Request(
        "PUT", f"{on.path}/tables/t/refs/main", {"rollback-to": on.load().snapshots[0].snapshot_id}
    )


def cherry_pick(on: Ground) -> Request:
    on.table()
    on.append()
    on.do("POST", f"{on.path}/tables/t", on.snapshot(branch="b"))
    on.append()
    picked = on.load().snapshot_refs["b"].snapshot_id
    return Request("PUT", f"{on.path}/tables/t/refs/main", {"cherry-pick": picked})


def remove_ref(on: Ground) -> Request:
    branch = make_branch(on)
    on.do(branch.method, branch.path, branch.body)
    return Request("DELETE", branch.path)


def mark_orphans(on: Ground) -> Request:
    on.table()
    on.append()
    left = Path(on.parquet().removeprefix("file://"))
    long_ago = left.stat().st_mtime - 3 * 24 * 3_600
    os.utime(left, (long_ago, long_ago))
    body = {"dry-run": False, "grace-period-ms": 3_600_000}
    return Request("POST", f"{on.path}/tables/t/orphans", body)


def begin_job(on: Ground) -> Request:
    on.table()
    return Request(
        "POST", f"{on.path}/tables/t/maintenance/jobs", {"job": "expire-snapshots", "id": uuid.uuid4().hex}
    )


def hold_job(on: Ground) -> Request:
    begin = begin_job(on)
    on.do(begin.method, begin.path, begin.body)
    return Request("POST", f"{begin.path}/{(begin.body or {})['id']}/hold", {"lease-ms": 3_600_000})


def end_job(on: Ground) -> Request:
    begin = begin_job(on)
    on.do(begin.method, begin.path, begin.body)
    return Request("POST", f"{begin.path}/{(begin.body or {})['id']}/end", {"state": "done"})


def create_warehouse(on: Ground) -> Request:
    root = on.do("GET", "/management/v1/warehouses/default")["root-location"]
    body = {"name": on.ns, "root-location": f"{root}-of-{on.ns}"}
    return Request("POST", "/management/v1/warehouses", body)


def change_warehouse(on: Ground) -> Request:
    create = create_warehouse(on)
    on.do(create.method, create.path, create.body)
    body = {"updates": {"default-properties": {"a": "b"}}}
    return Request("PATCH", f"/management/v1/warehouses/{on.ns}", body)


def drop_warehouse(on: Ground) -> Request:
    create = create_warehouse(on)
    on.do(create.method, create.path, create.body)
    return Request("DELETE", f"/management/v1/warehouses/{on.ns}")


WITHOUT_KEYS: Final = frozenset(
    {begin_job, hold_job, end_job, create_warehouse, change_warehouse, drop_warehouse}
)
"""Those that take no Idempotency-Key; to send them again does no harm."""
WITHOUT_RECEIPTS: Final = frozenset({mark_orphans, begin_job, hold_job, end_job})
ONCE_WITHOUT_KEYS: Final = frozenset(
    {
        create_staged,
        commit_snapshot,
        commit_over_many,
        commit_rebased,
        append_files,
        transaction,
        replace_view,
    }
)
"""Commits that have one effect however often they are sent."""
MUTATIONS: Final[tuple[Callable[[Ground], Request], ...]] = (
    create_table,
    create_staged,
    register_table,
    register_over,
    register_view,
    commit_properties,
    commit_snapshot,
    commit_over_many,
    commit_rebased,
    append_files,
    transaction,
    rename_table,
    drop_table,
    purge_table,
    undrop_table,
    undrop_with_namespace,
    undrop_registered,
    undrop_namespace,
    purge_dropped,
    restore,
    create_view,
    replace_view,
    rename_view,
    drop_view,
    unregister_table,
    unregister_unread,
    unregister_view,
    create_namespace,
    change_namespace,
    drop_namespace,
    expire,
    rewrite_manifests,
    make_branch,
    roll_back,
    cherry_pick,
    remove_ref,
    mark_orphans,
    begin_job,
    hold_job,
    end_job,
    create_warehouse,
    change_warehouse,
    drop_warehouse,
)

NIGHTLY: Final = frozenset(
    {
        commit_over_many,
        undrop_with_namespace,
        undrop_registered,
        purge_dropped,
        create_view,
        drop_view,
        rename_view,
        register_view,
        unregister_unread,
        unregister_view,
        make_branch,
        roll_back,
        mark_orphans,
        hold_job,
    }
)
"""Those that take the way of another one: they fail in each step in the nightly tests only."""
