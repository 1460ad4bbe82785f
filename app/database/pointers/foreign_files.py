"""Which tables name files outside their own places, noted as their pointers move.

Such a file may lie in the places of a table that is purged or whose snapshots expire. A commit that names one and a
deletion exclude each other: see `check_foreign`.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection

from sqlalchemy import Connection, Select, func, select

from app.database.connections.clock import database_now_ms
from app.database.pointers.left_files import exclude
from app.database.schema.rows import file_deletions, table_places
from app.database.schema.rows import foreign_places as rows
from app.database.statements.inserts import OnEachDatabase
from app.errors import FilesBeingDeleted

ANYWHERE = ""
"""In the place of a folder: it is not known where the table names files."""
UNSEEN = "?"
"""The same for new files that were not looked at yet, but can be: if files are being deleted just now, they are."""
MOST_PLACES = 64
"""With more, a table counts as one that is not known, until somebody looks at it."""

_NOTE = OnEachDatabase(
    rows,
    lambda insert: insert.on_conflict_do_update(
        index_elements=[rows.c.pointer_id, rows.c.place], set_={"noted": insert.excluded.noted}
    ),
)


class NotLookedAt(Exception):
    """A commit's files may be those that are being deleted; the transaction must be undone."""


def note_foreign(connection: Connection, pointer_id: int, folders: Collection[str]) -> None:
    """Note in which folders a table names files that lie outside its own places.

    Args:
        folders: as `app.fileio.locations.folder_name` spells them, `ANYWHERE` or `UNSEEN`; mostly none.
    """
    if not folders:
        return
    insert_foreign(connection, pointer_id, {ANYWHERE if each == UNSEEN else each for each in folders})
    places = select(func.count()).select_from(rows).where(rows.c.pointer_id == pointer_id)
    if connection.scalars(places).one() > MOST_PLACES:
        insert_foreign(connection, pointer_id, [ANYWHERE])


def insert_foreign(connection: Connection, pointer_id: int, folders: Collection[str]) -> None:
    """Insert rows for folders, or give those that are there a new number."""
    noted = secrets.randbits(62)
    values = [{"pointer_id": pointer_id, "place": folder, "noted": noted} for folder in sorted(folders)]
    if values:
        connection.execute(_NOTE[connection.dialect.name], values)


def check_foreign(connection: Connection, pointer_id: int | None, folders: Collection[str]) -> None:
    """Check that no files of these folders are being deleted; no deletion begins meanwhile.

    A deletion that begins later finds what is noted here. One that waits for another attempt looks anew by then.

    Args:
        pointer_id: the table's own, whose deletions do not count; None for a new one.
        folders: where the table names files, as in `note_foreign`.

    Raises:
        FilesBeingDeleted: some may be.
        NotLookedAt: the new files have to be looked at first.
    """
    known = [folder for folder in folders if folder not in {ANYWHERE, UNSEEN}]
    if not known and UNSEEN not in folders:
        return
    exclude(connection, registrations=False)
    begun = connection.execute(_at_work(pointer_id)).all()
    for row in begun:
        for folder in known:
            if folder.startswith(row.place) or row.place.startswith(folder):
                raise FilesBeingDeleted(folder, row.kind, row.identifier, is_registration=False)
    if begun and UNSEEN in folders:
        raise NotLookedAt


def are_deleted_now(connection: Connection, pointer_id: int | None) -> bool:
    """Say whether files of any other table are being deleted just now."""
    return connection.execute(_at_work(pointer_id).limit(1)).first() is not None


def _at_work(pointer_id: int | None) -> Select[tuple[str, str, str]]:
    """Return the query for the places of other tables whose files are being deleted just now."""
    entries = file_deletions
    return (
        select(entries.c.kind, entries.c.identifier, table_places.c.place)
        .join_from(entries, table_places, table_places.c.pointer_id == entries.c.pointer_id)
        .where(
            # What is finished is not leased. With the state, all that is queued would be read, and not what has begun.
            entries.c.begun_ms.is_not(None),
            entries.c.leased_until_ms > database_now_ms(),
            entries.c.pointer_id != (pointer_id or 0),
        )
    )
