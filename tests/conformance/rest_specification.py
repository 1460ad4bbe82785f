"""What the Iceberg REST specification says of each operation that is served: names, parameters, statuses, bodies."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """The facts of one operation; parameters by where they stand."""

    name: str
    path: frozenset[str]
    query: frozenset[str]
    headers: frozenset[str]
    statuses: frozenset[str]
    has_body: bool


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON = "400 401 403 419 503 5XX"

SPECIFIED = {
    "GET /v1/config": Operation(
        "getConfig",
        _words(""),
        _words("warehouse"),
        _words(""),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "GET /v1/{prefix}/namespaces": Operation(
        "listNamespaces",
        _words("prefix"),
        _words("pageSize pageToken parent"),
        _words(""),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces": Operation(
        "createNamespace",
        _words("prefix"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 200 406 409"),
        has_body=True,
    ),
    "GET /v1/{prefix}/namespaces/{namespace}": Operation(
        "loadNamespaceMetadata",
        _words("namespace prefix"),
        _words(""),
        _words(""),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "HEAD /v1/{prefix}/namespaces/{namespace}": Operation(
        "namespaceExists",
        _words("namespace prefix"),
        _words(""),
        _words(""),
        _words(_COMMON + " 204 404"),
        has_body=False,
    ),
    "DELETE /v1/{prefix}/namespaces/{namespace}": Operation(
        "dropNamespace",
        _words("namespace prefix"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 204 404 409"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/properties": Operation(
        "updateProperties",
        _words("namespace prefix"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 200 404 406 422"),
        has_body=True,
    ),
    "GET /v1/{prefix}/namespaces/{namespace}/tables": Operation(
        "listTables",
        _words("namespace prefix"),
        _words("pageSize pageToken"),
        _words(""),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables": Operation(
        "createTable",
        _words("namespace prefix"),
        _words(""),
        _words("Idempotency-Key X-Iceberg-Access-Delegation"),
        _words(_COMMON + " 200 404 409"),
        has_body=True,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/register": Operation(
        "registerTable",
        _words("namespace prefix"),
        _words(""),
        _words("Idempotency-Key X-Iceberg-Access-Delegation"),
        _words(_COMMON + " 200 404 409"),
        has_body=True,
    ),
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}": Operation(
        "loadTable",
        _words("namespace prefix table"),
        _words("referenced-by snapshots"),
        _words("If-None-Match X-Iceberg-Access-Delegation"),
        _words(_COMMON + " 200 304 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}": Operation(
        "updateTable",
        _words("namespace prefix table"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 200 404 409 500 502 504"),
        has_body=True,
    ),
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}": Operation(
        "dropTable",
        _words("namespace prefix table"),
        _words("purgeRequested"),
        _words("Idempotency-Key"),
        _words(_COMMON + " 204 404"),
        has_body=False,
    ),
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}": Operation(
        "tableExists",
        _words("namespace prefix table"),
        _words(""),
        _words(""),
        _words(_COMMON + " 204 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister": Operation(
        "unregisterTable",
        _words("namespace prefix table"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/tables/rename": Operation(
        "renameTable",
        _words("prefix"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 204 404 406 409"),
        has_body=True,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics": Operation(
        "reportMetrics",
        _words("namespace prefix table"),
        _words(""),
        _words(""),
        _words(_COMMON + " 204 404"),
        has_body=True,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan": Operation(
        "planTableScan",
        _words("namespace prefix table"),
        _words(""),
        _words("Idempotency-Key X-Iceberg-Access-Delegation"),
        _words(_COMMON + " 200 404 406"),
        has_body=True,
    ),
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}": Operation(
        "fetchPlanningResult",
        _words("namespace plan-id prefix table"),
        _words(""),
        _words("X-Iceberg-Access-Delegation"),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}": Operation(
        "cancelPlanning",
        _words("namespace plan-id prefix table"),
        _words(""),
        _words("Idempotency-Key X-Iceberg-Access-Delegation"),
        _words(_COMMON + " 204 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks": Operation(
        "fetchScanTasks",
        _words("namespace prefix table"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 200 404"),
        has_body=True,
    ),
    "POST /v1/{prefix}/transactions/commit": Operation(
        "commitTransaction",
        _words("prefix"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 204 404 409 500 502 504"),
        has_body=True,
    ),
    "GET /v1/{prefix}/namespaces/{namespace}/views": Operation(
        "listViews",
        _words("namespace prefix"),
        _words("pageSize pageToken"),
        _words(""),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/views": Operation(
        "createView",
        _words("namespace prefix"),
        _words(""),
        _words(""),
        _words(_COMMON + " 200 404 409"),
        has_body=True,
    ),
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}": Operation(
        "loadView",
        _words("namespace prefix view"),
        _words("referenced-by"),
        _words(""),
        _words(_COMMON + " 200 404"),
        has_body=False,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}": Operation(
        "replaceView",
        _words("namespace prefix view"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 200 404 409 500 502 504"),
        has_body=True,
    ),
    "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}": Operation(
        "dropView",
        _words("namespace prefix view"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 204 404"),
        has_body=False,
    ),
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}": Operation(
        "viewExists",
        _words("namespace prefix view"),
        _words(""),
        _words(""),
        _words("204 400 401 404 419 503 5XX"),
        has_body=False,
    ),
    "POST /v1/{prefix}/views/rename": Operation(
        "renameView",
        _words("prefix"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 204 404 406 409"),
        has_body=True,
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/register-view": Operation(
        "registerView",
        _words("namespace prefix"),
        _words(""),
        _words("Idempotency-Key"),
        _words(_COMMON + " 200 404 409"),
        has_body=True,
    ),
}
"""Method and path of the specification of August 2026, less what is not served."""
