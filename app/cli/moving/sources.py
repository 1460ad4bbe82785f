"""From the options of an import or export to the catalogs that it needs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import typer

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace
from app.maintenance.spark_sessions import SparkSessions
from app.moving.sources import Source

_HEADER = "header."


@contextmanager
def rest_catalog(uri: str, warehouse: str | None, properties: Mapping[str, str]) -> Iterator[RemoteCatalog]:
    """Connect to a catalog by the properties `token` and `header.…`, as clients have them."""
    headers = {key.removeprefix(_HEADER): text for key, text in properties.items() if key.startswith(_HEADER)}
    rest = sorted(key for key in properties if not key.startswith(_HEADER) and key != "token")
    if rest:
        raise typer.BadParameter(f"{', '.join(rest)} cannot be used: token and header.<name> can")
    token = properties.get("token")
    if token is not None:
        headers["Authorization"] = f"Bearer {_secret(token)}"
    with RemoteCatalog(uri, warehouse, headers=headers) as catalog:
        yield catalog


@contextmanager
def sql_source(url: str, catalog_name: str | None) -> Iterator[Source]:
    """Open a database that has the tables of a SQL catalog."""
    from app.moving.sql_source import SqlSource

    with closing(SqlSource(_secret(url), catalog_name)) as source:
        yield source


@contextmanager
def spark_source(master: str, catalog: str, confs: Mapping[str, str]) -> Iterator[Source]:
    """Start or reach Spark, and mount a catalog in it."""
    from app.moving.spark_source import SparkSource

    prefix = f"spark.sql.catalog.{catalog}."
    properties = {key.removeprefix(prefix): text for key, text in confs.items() if key.startswith(prefix)}
    settings = {key: text for key, text in confs.items() if not key.startswith(prefix)}
    with closing(SparkSessions(master, settings)) as sessions:
        yield SparkSource(sessions.open(), catalog, properties)


def folder_source(folder: str, storage: Mapping[str, str], within: Namespace | None) -> Source:
    """Look through a folder of metadata files."""
    from app.fileio.schemes import files_for
    from app.moving.folder_source import FolderSource

    place = folder if "//" in folder or folder.startswith("file:") else str(Path(folder).resolve())
    return FolderSource(place, files_for({key: _secret(text) for key, text in storage.items()}), within)


def _secret(text: str) -> str:
    """Return a value, or that of the environment variable that `env:NAME` names."""
    if not text.startswith("env:"):
        return text
    name = text.removeprefix("env:")
    if name not in os.environ:
        raise typer.BadParameter(f"the environment variable {name} is not set")
    return os.environ[name]
