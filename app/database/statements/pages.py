"""Keyset paging: the names after a given name, in the order of an index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Select, Text, bindparam, cast, func, select

from app.database.statements.driver_sql import rows_of

ALL_ROWS = 2**62
KEPT_PAGES = 16
LONGEST_KEPT = 2**16
"""Pages of names that are kept, and characters of one: most are read again as they were."""
PageOfNames = Mapping[str, Select[str]]
"""The query for one page of names, for each dialect."""


def page_of(query: Select[str], name: Column[str]) -> PageOfNames:
    """Return the query for one page of names: those greater than `after`.

    All names come as one JSON array: rows cost Python as much time each as the database needs for ten.
    """
    page = query.where(name > bindparam("after")).order_by(name).limit(bindparam("at_most", type_=BigInteger))
    names = page.subquery()
    return {
        "sqlite": select(func.json_group_array(names.c.name)),
        "postgresql": select(func.coalesce(cast(func.json_agg(names.c.name), Text), "[]")),
    }


def names_on_page(
    connection: Connection, page: PageOfNames, parameters: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the names, in order. For a page that is as it was it is the same tuple: what is made of it can be kept."""
    array: str = rows_of(connection, page[connection.dialect.name], parameters)[0][0]
    return _kept_names_in(array) if len(array) <= LONGEST_KEPT else _names_in(array)


def _names_in(array: str) -> tuple[str, ...]:
    # Both databases compare names byte by byte, as Python does; that arrays keep an order they do not promise.
    return tuple(sorted(json.loads(array)))


_kept_names_in = lru_cache(KEPT_PAGES)(_names_in)


def page_parameters(after: str | None, limit: int | None) -> dict[str, Any]:
    """Return the values for `page_of`; no name is empty, so an empty `after` comes before all."""
    return {"after": after or "", "at_most": ALL_ROWS if limit is None else limit}
