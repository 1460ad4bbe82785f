"""Warehouses of layout hadoop for tests, and what is in their folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from app.catalog.context.catalog import Catalog
from app.catalog.tables import NewTable
from app.database.warehouses import Layout
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.schema import Schema
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on

SCHEMA = Schema.model_validate(
    {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
)


def identifier(dotted: str) -> TableIdentifier:
    *levels, name = dotted.split(".")
    return TableIdentifier(Namespace(tuple(levels)), name)


def tree_on(
    folder: Path, step: Callable[[str], None] = lambda _name: None, *, database: str = "rows.db", **rules: Any
) -> Catalog:
    """Return a warehouse of layout hadoop whose root is `<folder>/tables`."""
    root = folder / "tables"
    root.mkdir(exist_ok=True)
    server = server_on(f"sqlite:///{folder / database}", LocalFiles([f"file://{root}"]), step=step, **rules)
    return new_warehouse(server, "files", f"file://{root}", layout=Layout.HADOOP)


def new_table(dotted: str, location: str | None = None, **properties: str) -> NewTable:
    return NewTable(identifier(dotted), SCHEMA, None, None, location, properties)


def metadata_folder(folder: Path, dotted: str) -> Path:
    return folder.joinpath("tables", *dotted.split("."), "metadata")


def write_version(metadata: Path, number: int, base: int | None = None, **changes: Any) -> Path:
    """Write a version as another program would, made from an earlier one of the folder."""
    document = orjson.loads((metadata / f"v{base or number - 1}.metadata.json").read_bytes())
    log = document.get("metadata-log", [])
    log.append(
        {
            "timestamp-ms": document["last-updated-ms"],
            "metadata-file": f"file:{metadata}/v{base or number - 1}.metadata.json",
        }
    )
    moment = document["last-updated-ms"] + 1
    document |= {"metadata-log": log, "last-updated-ms": moment} | {
        key.replace("_", "-"): value for key, value in changes.items()
    }
    path = metadata / f"v{number}.metadata.json"
    path.write_bytes(orjson.dumps(document))
    return path
