"""Tables and views made through the catalog's own functions, and the small values they are made of."""

from __future__ import annotations

import contextlib
import itertools

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable, LoadedView
from app.catalog.namespaces import create_namespace
from app.catalog.tables import NewTable
from app.catalog.views import NewView
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewVersion
from app.errors import NamespaceExists
from tests.builders.catalogs import START_MS
from tests.builders.commits import commit_table

FLIGHTS = Namespace(("flights",))
DEPARTURES = TableIdentifier(FLIGHTS, "departures")
SCHEMA = Schema.from_json(
    b'{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},'
    b'{"id":2,"name":"carrier","required":false,"type":"string"}]}'
)
_snapshot_ids = itertools.count(1_000)


def namespace_in(catalog: Catalog, namespace: Namespace = FLIGHTS) -> Namespace:
    """Return a namespace, made if it is not there."""
    with contextlib.suppress(NamespaceExists):
        create_namespace(catalog, namespace, {})
    return namespace


def new_table(identifier: TableIdentifier = DEPARTURES, **properties: str) -> NewTable:
    """Return the wish for a table of two columns."""
    return NewTable(identifier, SCHEMA, None, None, None, properties)


def table_in(
    catalog: Catalog,
    identifier: TableIdentifier = DEPARTURES,
    properties: dict[str, str] | None = None,
) -> LoadedTable:
    """Return a new table, with its namespace."""
    namespace_in(catalog, identifier.namespace)
    new = NewTable(identifier, SCHEMA, None, None, None, properties or {})
    return named.create(catalog, new)


def load_table(catalog: Catalog, identifier: TableIdentifier = DEPARTURES) -> LoadedTable:
    """Return a table as it is now."""
    return named.load(catalog, TABLES, identifier)


def view_version(sql: str = "SELECT 1", dialect: str = "spark", version_id: int = 1) -> ViewVersion:
    """Return a version of a view with one query."""
    return ViewVersion.from_object(
        {
            "version-id": version_id,
            "timestamp-ms": START_MS,
            "schema-id": 0,
            "summary": {"engine-name": "test"},
            "default-namespace": ["flights"],
            "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
        }
    )


def view_in(catalog: Catalog, identifier: TableIdentifier = DEPARTURES) -> LoadedView:
    """Return a new view, with its namespace."""
    namespace_in(catalog, identifier.namespace)
    return named.create(catalog, NewView(identifier, SCHEMA, view_version(), None, {}))


def head(table: LoadedTable) -> Snapshot:
    """Return the current snapshot of a table that has one."""
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    return snapshot


def snapshot_on(metadata: TableMetadata, *, manifest_list: str | None = None, **fields: object) -> Snapshot:
    """Return the snapshot that an append to this metadata would make."""
    current = metadata.current_snapshot
    snapshot_id = SnapshotId(next(_snapshot_ids))
    made = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=current.snapshot_id if current else None,
        sequence_number=metadata.last_sequence + 1 if metadata.format_version > 1 else None,
        timestamp_ms=metadata.last_updated_ms + 1,
        manifest_list=Location(manifest_list or f"{metadata.location}/metadata/snap-{snapshot_id}.avro"),
        summary={"operation": "append"},
        schema_id=metadata.current_schema_id,
    )
    return made.replace(**fields)


def append(snapshot: Snapshot, branch: str = "main") -> list[Update]:
    """Return the updates of an append."""
    ref = SetSnapshotRef(ref_name=branch, snapshot_id=snapshot.snapshot_id, type="branch")
    return [AddSnapshot(snapshot=snapshot), ref]


def commit_to(catalog: Catalog, *updates: Update, identifier: TableIdentifier = DEPARTURES) -> LoadedTable:
    """Commit updates to a table, without requirements."""
    return commit_table(catalog, identifier, [], updates)


def append_to(catalog: Catalog, table: LoadedTable) -> LoadedTable:
    """Commit one more snapshot to a table."""
    return commit_table(catalog, table.identifier, [], append(snapshot_on(table.metadata)))
