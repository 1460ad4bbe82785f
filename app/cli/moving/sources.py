"""From the options of an import or export to the catalogs that it needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import typer

from app.client.catalog import RemoteCatalog
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.identifiers import Namespace
from app.fileio.files import FileIO
from app.maintenance.spark.spark_sessions import SparkSessions
from app.moving.parquet_folders import ParquetFolder, listed_files, look_at
from app.moving.sources import Source

_HEADER = "header."
_HEADER_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")


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
    for name, text in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not (text.isascii() and text.isprintable()):
            # The value may be a secret.
            raise typer.BadParameter(
                f"header {name!r} cannot be sent: its name or value has strange characters"
            )
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
    from app.moving.folder_source import FolderSource

    return FolderSource(_place(folder), _files(storage), within)


def parquet_folder(
    folder: str, storage: Mapping[str, str], types: Mapping[str, PrimitiveType]
) -> ParquetFolder:
    """Read the footers of the files in a folder, or of those that `@FILE` lists."""
    files = _files(storage)
    root = ""
    if folder.startswith("@"):
        try:
            lines = Path(folder[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{folder[1:]} cannot be read: {error}") from error
        paths = [line.strip() for line in lines if line.strip()]
        if not paths:
            raise typer.BadParameter(f"{folder[1:]} names no files")
    else:
        root = _place(folder)
        paths = listed_files(root, files)
    return look_at(paths, files, types, root)


def _place(folder: str) -> str:
    """Return a location; what is not one is a folder of this machine."""
    if "://" in folder or folder.startswith("file:"):
        return folder.rstrip("/")
    return f"file://{Path(folder).resolve()}"


def _files(storage: Mapping[str, str]) -> FileIO:
    from app.fileio.schemes import files_for

    return files_for({key: _secret(text) for key, text in storage.items()})


def _secret(text: str) -> str:
    """Return a value, or that of the environment variable that `env:NAME` names."""
    if not text.startswith("env:"):
        return text
    name = text.removeprefix("env:")
    if name not in os.environ:
        raise typer.BadParameter(f"the environment variable {name} is not set")
    return os.environ[name]
