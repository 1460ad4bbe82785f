"""Keyset paging: the names after a given name, in the order of an index."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Select, bindparam

ALL_ROWS = 2**62


def page_of(query: Select[str], name: Column[str]) -> Select[str]:
    """Return the query for one page of names: those greater than `after`."""
    return query.where(name > bindparam("after")).order_by(name).limit(bindparam("at_most", type_=BigInteger))


def page_parameters(after: str | None, limit: int | None) -> dict[str, Any]:
    """Return the values for `page_of`; no name is empty, so an empty `after` comes before all."""
    return {"after": after or "", "at_most": ALL_ROWS if limit is None else limit}
