"""Which files of a table other tables and views may have too, as far as rows can say.

What was dropped and can come back counts like what is there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, CompoundSelect, Select, exists, or_, select, true, union_all

from app.database.schema.rows import dropped, pointers, table_places
from app.database.schema.rows import pointer_history as history
from app.engine.model.ids import TableUuid

_NO_ID = 0
"""Rows are numbered from one."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What pointers say of some files and folders."""

    current: frozenset[str]
    """Those of the files that are the current metadata file of something."""
    places: frozenset[str]
    """Those of the folders where another table or view keeps files."""


def may_share_files(uuid: TableUuid, pointer_id: int | None) -> ColumnElement[bool]:
    """Return the condition that another pointer may have the same files as a table.

    That is one with the table's uuid. And it may be any if the table has, or once had, no uuid (version 1 of the
    format allows that): then nothing says which are the same. What is read-only here shares its files with another
    catalog.
    """
    if not uuid:
        return true()
    elsewhere = or_(
        exists().where(pointers.c.id == (pointer_id or _NO_ID), pointers.c.registration < 0),
        exists().where(dropped.c.pointer_id == (pointer_id or _NO_ID), dropped.c.registration < 0),
    )
    twins = or_(
        exists().where(pointers.c.uuid == uuid, pointers.c.id != (pointer_id or _NO_ID)),
        exists().where(dropped.c.uuid == uuid, dropped.c.pointer_id != (pointer_id or _NO_ID)),
    )
    earlier = history.alias("earlier")
    once_nameless = exists().where(
        history.c.uuid == uuid, earlier.c.pointer_id == history.c.pointer_id, earlier.c.uuid == ""
    )
    return or_(twins, once_nameless, elsewhere)


def named_by_pointers(files: Collection[str]) -> CompoundSelect[tuple[str]]:
    """Return the query for those of some files that are the current metadata file of something."""
    return union_all(
        select(pointers.c.metadata_location).where(pointers.c.metadata_location.in_(files)),
        select(dropped.c.metadata_location).where(dropped.c.metadata_location.in_(files)),
    )


def claimed_by_others(folders: Collection[str], pointer_id: int | None) -> Select[tuple[str]]:
    """Return the query for those of some folders that other pointers claim."""
    return select(table_places.c.place).where(
        table_places.c.place.in_(folders),
        table_places.c.pointer_id != (pointer_id or _NO_ID),
        or_(
            exists().where(pointers.c.id == table_places.c.pointer_id),
            exists().where(dropped.c.pointer_id == table_places.c.pointer_id),
        ),
    )
