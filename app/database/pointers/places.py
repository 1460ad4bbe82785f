"""Which folders are free: nothing has a place there, above it or below it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from functools import cache

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal,
    or_,
    select,
)

from app.database.pointers.left_files import comes_back
from app.database.schema.rows import dropped, file_deletions, pointers, table_places
from app.database.statements.driver_sql import rows_of
from app.errors import IcetowerError

NO_ID = 0
"""Rows are numbered from one."""
# Those of many folders that `_overlapping` may find something for: what has lost its right to a place counts, too. Each
# is looked up by itself, whatever Postgres makes of their number, for it stands in a list of columns.
_MAYBE_OVERLAPPING = """
    SELECT DISTINCT number FROM (
        SELECT number, EXISTS (
            SELECT 1 FROM table_places WHERE place >= first AND place < behind AND pointer_id <> own_id
        ) AS is_met
        FROM unnest(%(numbers)s::bigint[], %(own_ids)s::bigint[], %(firsts)s::text[], %(behinds)s::text[])
            AS folder (number, own_id, first, behind)
        UNION ALL
        SELECT number, EXISTS (SELECT 1 FROM table_places WHERE place = name AND pointer_id <> own_id)
        FROM unnest(%(of_numbers)s::bigint[], %(of_own_ids)s::bigint[], %(around)s::text[])
            AS around (number, own_id, name)
    ) AS looked WHERE is_met
"""


class PlaceTaken(IcetowerError):
    """A folder that a new table was to have alone is taken; nothing was changed."""

    def __init__(self, place: str) -> None:
        self.place = place
        super().__init__(f"Another table or view keeps files in {place}, above it or below it")


@cache
def _overlapping(size: int) -> Select[tuple[int]]:
    """Return the query for a pointer with a place that is some folder, around it, or inside it.

    It takes so many folders around it: a list of any length would be written out anew each time.
    """
    rows = table_places
    return (
        select(rows.c.pointer_id)
        .where(
            or_(
                rows.c.place.in_([bindparam(f"around_{number}") for number in range(size)]),
                and_(rows.c.place >= bindparam("first"), rows.c.place < bindparam("behind")),
            ),
            rows.c.pointer_id != bindparam("own_id", type_=BigInteger),
            _keeps_its_places(),
        )
        .limit(1)
    )


def _keeps_its_places() -> ColumnElement[bool]:
    """Return the condition that a place belongs to something that still has a right to it.

    What was dropped has it while it can come back, or while its files are being deleted. What a purge comes back for
    a day later has not: it keeps away from the places of others by then.
    """
    rows, deletions = table_places, file_deletions
    waits = and_(comes_back(), deletions.c.begun_ms.is_(None))
    return or_(
        exists().where(pointers.c.id == rows.c.pointer_id),
        exists().where(dropped.c.pointer_id == rows.c.pointer_id),
        exists().where(deletions.c.pointer_id == rows.c.pointer_id, deletions.c.state == "queued", ~waits),
    )


def is_free(connection: Connection, place: str, own_id: int = NO_ID) -> bool:
    """Say whether no other pointer has a place that is this folder, around it, or inside it.

    Args:
        connection: of a transaction.
        place: as `app.fileio.locations.folder_name` spells it.
        own_id: the pointer whose own places do not matter.
    """
    return not find_taken(connection, [(own_id, place)])


def find_taken(connection: Connection, claimed: Sequence[tuple[int, str]]) -> list[str]:
    """Return those of some folders that are not free.

    Args:
        connection: of a transaction.
        claimed: the folders, each with the pointer whose own places do not matter.
    """
    if connection.dialect.name != "postgresql" or len(claimed) <= 1:
        return [place for own_id, place in claimed if _is_taken(connection, place, own_id)]
    around = [
        (number, own_id, folder)
        for number, (own_id, place) in enumerate(claimed)
        for folder in _around(place)
    ]
    values = {
        "numbers": list(range(len(claimed))),
        "own_ids": [own_id for own_id, _ in claimed],
        "firsts": [place for _, place in claimed],
        "behinds": [_behind(place) for _, place in claimed],
        "of_numbers": [number for number, _, _ in around],
        "of_own_ids": [own_id for _, own_id, _ in around],
        "around": [folder for _, _, folder in around],
    }
    maybe = [claimed[number] for (number,) in connection.exec_driver_sql(_MAYBE_OVERLAPPING, values)]
    return [place for own_id, place in maybe if _is_taken(connection, place, own_id)]


def _is_taken(connection: Connection, place: str, own_id: int) -> bool:
    around = _around(place)
    size = max(4, 1 << (len(around) - 1).bit_length())
    values = {f"around_{number}": around[min(number, len(around) - 1)] for number in range(size)} | {
        "first": place,
        "behind": _behind(place),
        "own_id": own_id,
    }
    return bool(rows_of(connection, _overlapping(size), values))


def _around(place: str) -> list[str]:
    """Return a folder and those around it."""
    start = place.index("://") + 3
    return [place[: end + 1] for end, letter in enumerate(place) if letter == "/" and end >= start]


def _behind(place: str) -> str:
    """Return what comes behind a folder and all inside it: after a slash comes a zero."""
    return place[:-1] + "0"


def taken_of(connection: Connection, folders: Collection[str]) -> frozenset[str]:
    """Return those of some folders that are places; what is around them does not matter."""
    if not folders:
        return frozenset()
    names = list(folders)
    size = max(4, 1 << (len(names) - 1).bit_length())
    values = {f"of_{number}": names[min(number, len(names) - 1)] for number in range(size)}
    return frozenset(place for (place,) in rows_of(connection, _taken(size), values))


@cache
def _taken(size: int) -> Select[tuple[str]]:
    """Return the query for those of so many folders that are places."""
    place = table_places.c.place
    folders = place.in_([bindparam(f"of_{number}") for number in range(size)])
    return select(place).where(folders, _keeps_its_places()).distinct()


def check_alone(connection: Connection, claimed: Sequence[tuple[int, str]]) -> None:
    """Check that new pointers have their folders alone; the last step of a transaction.

    Those who do this for folders in one store wait for each other until they have ended, so one of them sees the other.
    Nothing is waited for while the lock is held. Those who bring a location of their own do not ask,
    and so do not wait: they might as well come later.

    Args:
        connection: of the transaction, in which the places are inserted already.
        claimed: pointers with their folders.

    Raises:
        PlaceTaken: another one was first.
    """
    if connection.dialect.name == "postgresql":
        for key in sorted(set(map(_lock_key, (place for _, place in claimed)))):
            connection.execute(select(func.pg_advisory_xact_lock(literal(key, BigInteger))))
    # SQLite has one writer at a time anyway.
    taken = find_taken(connection, claimed)
    if taken:
        raise PlaceTaken(taken[0])


def _lock_key(place: str) -> int:
    """Return a number for the store and bucket of a folder: overlapping folders have the same."""
    scheme, _, rest = place.partition("://")
    name = f"places of {scheme}://{rest.partition('/')[0]}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
