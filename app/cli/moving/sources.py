"""From the options of an import or export to the catalogs that it needs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import typer

from app.cli.terminal.output import warn, warn_of_links
from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed, CatalogUnreachable
from app.client.http.http_calls import checked_url, is_loopback, shown_uri
from app.client.oauth2 import DEFAULT_ENDPOINT, DEFAULT_SCOPE, ClientLogin, OAuth2Tokens
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.identifiers import Namespace
from app.fileio.files import FileIO
from app.fileio.links import links_below
from app.formats.metadata.names import is_metadata_file
from app.maintenance.spark.spark_sessions import SparkSessions
from app.moving.parquet_folders import ParquetFolder, listed_files, look_at
from app.moving.sources import Source

_HEADER = "header."
_LOGIN: Final = ("token", "credential", "oauth2-server-uri", "scope", "audience", "resource")
"""Properties that say who calls, beside headers."""
_HEADER_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")


@contextmanager
def rest_catalog(uri: str, warehouse: str | None, properties: Mapping[str, str]) -> Iterator[RemoteCatalog]:
    """Connect to a catalog by the properties that say who calls, as clients have them.

    These are `token`, or `credential` with `oauth2-server-uri`, `scope`, `audience` and `resource`; and `header.…`.
    """
    if warehouse == "":
        raise typer.BadParameter(
            "the name of the other catalog's warehouse is empty: leave the option out for its default"
        )
    headers = _headers(properties)
    rest = sorted(key for key in properties if not key.startswith(_HEADER) and key not in _LOGIN)
    if rest:
        raise typer.BadParameter(
            f"{', '.join(rest)} cannot be used: {', '.join(_LOGIN)} and header.<name> can"
        )
    named = [key for key in ("token", "credential") if key in properties]
    named += [f"header.{name}" for name in headers if name.lower() == "authorization"]
    named += ["a user in the address"] if shown_uri(uri) != uri else []
    if len(named) > 1:
        raise typer.BadParameter(f"{' and '.join(named)} both say who calls: give one of them")
    if "token" in properties:
        headers |= _checked({"Authorization": f"Bearer {_secret(properties['token'])}"})
    with ExitStack() as stack:
        tokens = None
        login = _login(uri, properties, headers)
        if login is not None:
            tokens = stack.enter_context(closing(OAuth2Tokens(login)))
        try:
            yield stack.enter_context(RemoteCatalog(uri, warehouse, headers=headers, tokens=tokens))
        except CatalogUnreachable as failure:
            if failure.uri != shown_uri(uri).rstrip("/"):
                raise
            # The usual advice is about the options of the other catalog, which this command goes between.
            raise CallFailed(str(failure)) from failure


def _headers(properties: Mapping[str, str]) -> dict[str, str]:
    found = {
        key.removeprefix(_HEADER): _secret(text)
        for key, text in properties.items()
        if key.startswith(_HEADER)
    }
    return _checked(found)


def _checked(headers: dict[str, str]) -> dict[str, str]:
    for name, text in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not (text.isascii() and text.isprintable()):
            # The value may be a secret.
            raise typer.BadParameter(
                f"header {name!r} cannot be sent: its name or value has strange characters"
            )
    return headers


def _login(uri: str, properties: Mapping[str, str], headers: Mapping[str, str]) -> ClientLogin | None:
    """Return how the client logs in, if it has a credential."""
    if "credential" not in properties:
        alone = sorted(key for key in properties if key in _LOGIN and key != "token")
        if alone:
            raise typer.BadParameter(
                f"{', '.join(alone)} without credential: it says where and for what to log in"
            )
        return None
    credential = _secret(properties["credential"])
    if not credential.rpartition(":")[2].strip():
        raise typer.BadParameter(
            "credential has no secret: it is <id>:<secret>, or env:NAME of a variable with that"
        )
    token_uri = properties.get("oauth2-server-uri", DEFAULT_ENDPOINT)
    if "://" not in token_uri:
        token_uri = f"{uri.rstrip('/')}/{token_uri.lstrip('/')}"
    token_url = checked_url(token_uri)
    if token_url.scheme == "http" and not is_loopback(token_url.host):
        warn(f"The secret goes to {shown_uri(token_uri)} without encryption")
    return ClientLogin(
        credential,
        token_uri,
        properties.get("scope", DEFAULT_SCOPE),
        {key: properties[key] for key in ("audience", "resource") if key in properties},
        # Some servers know by a header whose clients these are; what another server is, they do not concern.
        headers if _origin(token_uri) == _origin(uri) else {},
    )


def _origin(uri: str) -> tuple[str, str, int | None]:
    url = checked_url(uri)
    return url.scheme, url.host, url.port


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
    from app.moving.folder_source import FolderSource, spelled_by_tables

    place = _place(folder)
    files = _files(storage, place)
    root = spelled_by_tables(folder, place, files)
    warn_of_links(links_below(root, is_metadata_file))
    return FolderSource(root, files, within)


def parquet_files(
    folder: str, storage: Mapping[str, str], types: Mapping[str, PrimitiveType]
) -> tuple[dict[str, int], Callable[[Sequence[str]], ParquetFolder]]:
    """Return the files in a folder, or those that `@FILE` lists, and what reads their footers."""
    root = ""
    if folder.startswith("@"):
        try:
            lines = Path(folder[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{folder[1:]} cannot be read: {error}") from error
        found = {line.strip(): 0 for line in lines if line.strip()}
        if not found:
            raise typer.BadParameter(f"{folder[1:]} names no files")
        files = _files(storage, next(iter(found)))
    else:
        root = _place(folder)
        files = _files(storage, root)
        warn_of_links(links_below(root, lambda _file: True))
        found = listed_files(root, files)
    return found, lambda paths: look_at(paths, files, types, root)


def _place(folder: str) -> str:
    """Return a location; what is not one is a folder of this machine."""
    if "://" in folder or folder.startswith("file:"):
        return folder.rstrip("/")
    if not folder:
        # The folder of the process is `.`: an empty name is mostly that of a variable that is not set.
        raise typer.BadParameter("the name of the folder is empty")
    try:
        found = Path(folder).resolve()
        if found.is_file():
            raise typer.BadParameter(f"{folder} is a file, and a folder is meant")
    except (OSError, RuntimeError, ValueError) as error:
        raise typer.BadParameter(f"{folder} cannot be a folder: {error}") from error
    return f"file://{found}"


def _files(storage: Mapping[str, str], place: str) -> FileIO:
    """Return the store of a place by the settings that were given.

    Raises:
        InvalidSetting, InvalidLocation: they make no sense. Files say so too late, and as if a server had them.
    """
    from app.fileio.schemes import check_storage, files_for

    settings = {key: _secret(text) for key, text in storage.items()}
    check_storage(place, settings)
    return files_for(settings)


def _secret(text: str) -> str:
    """Return a value, or that of the environment variable that `env:NAME` names."""
    if not text.startswith("env:"):
        return text
    name = text.removeprefix("env:")
    if name not in os.environ:
        raise typer.BadParameter(f"the environment variable {name} is not set")
    return os.environ[name]
