"""From the options of a command to a catalog that it can call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import typer

from app.client.catalog import RemoteCatalog
from app.client.http.http_calls import HttpCalls, shown_uri
from app.client.warehouses import WarehouseCalls
from app.dotenv_file import read_dotenv

DEFAULT_URI = "http://127.0.0.1:8181"


def connected(
    uri: str | None, warehouse: str | None, *, patience_seconds: float = 60.0, job: str | None = None
) -> RemoteCatalog:
    """Connect to a warehouse of the chosen server, for a job of upkeep if its id is given.

    Answers are waited for so many seconds.
    """
    return RemoteCatalog(
        chosen_uri(uri), chosen_warehouse(warehouse), timeout_seconds=patience_seconds, job=job
    )


def chosen_warehouse(given: str | None) -> str | None:
    """Return the warehouse given as an option, variable or in `.env`, if one is.

    Raises:
        BadParameter: it is empty.
    """
    _check_given(given, "name of the warehouse")
    return given or _from_dotenv("ICETOWER_WAREHOUSE") or None


@contextmanager
def management(uri: str | None) -> Iterator[WarehouseCalls]:
    """Connect to the management API of the chosen server."""
    with closing(HttpCalls(chosen_uri(uri))) as calls:
        yield WarehouseCalls(calls)


def chosen_uri(given: str | None) -> str:
    """Return the address given as an option or variable or in `.env`, or else the usual one.

    Raises:
        BadParameter: it is empty.
    """
    _check_given(given, "address of the server")
    return given or _from_dotenv("ICETOWER_URI") or DEFAULT_URI


def _check_given(given: str | None, what: str) -> None:
    if given == "":
        # Mostly that of a variable which is not set: the usual one instead may be the wrong one.
        raise typer.BadParameter(f"the {what} is empty: leave the option out for the usual one")


def place_name(uri: str, warehouse: str | None) -> str:
    """Return what reports and fences call a warehouse: its address without user and password."""
    return "/".join(filter(None, (shown_uri(uri).rstrip("/"), warehouse)))


def _from_dotenv(variable: str) -> str | None:
    # The server reads .env, so a user who writes the client's variables there expects them to be read too.
    return read_dotenv().get(variable)
