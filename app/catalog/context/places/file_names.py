"""The mark of this catalog in the names of the files that its servers write."""

from __future__ import annotations

import hashlib

from app.catalog.context.server import Server
from app.engine.model.ids import TableUuid
from app.fileio.locations import loose_place_of
from app.formats.metadata.own_names import has_mark, marked

EXPORTS = ".icetower/pointers"
"""Below the root of a warehouse: where its exports lie. Nothing in it is a table's, wherever a table lies."""
TRIES = ".icetower-"
"""How the names of files begin that servers write only for a moment."""
_KEY, _SIZE_BYTES = "names of metadata files", 4


def mark_of(server: Server) -> bytes:
    """Return the bytes that all servers on this database, and no others, put into names."""
    return server.signing_keys.find_or_create(_KEY, _SIZE_BYTES, server.now_ms())


def new_file_uuid(server: Server) -> str:
    """Return the uuid for the name of a new metadata file."""
    return marked(server.new_uuid(), mark_of(server))


def content_mark(server: Server, uuid: str, folder: str) -> bytes:
    """Return the mark in the names of what servers write into one folder for one table.

    That is for manifests, lists and statistics. It is another one in each folder and for each table. So a copy of a
    table has no file that looks like one of a server of ours, whatever its times say; nor has an earlier table that
    lay in the same folder.
    """
    return _hash(server, uuid, *loose_place_of(folder))


def new_content_uuid(server: Server, uuid: str, folder: str) -> str:
    """Return the uuid for the name of a new manifest, list or statistics file of a table."""
    return marked(server.new_uuid(), content_mark(server, uuid, folder))


def uuid_for_place(server: Server, uuid: TableUuid, location: str) -> TableUuid:
    """Return the uuid of a new table or view that is to have its folder alone.

    It is made of a random one. Clients send it back with the location when they create a table that was staged. So the
    server knows the places that it has given, and keeps no list of them.
    """
    return TableUuid(marked(uuid, _hash(server, *loose_place_of(location))))


def has_uuid_for_place(server: Server, uuid: str, location: str) -> bool:
    """Say whether a uuid is one that `uuid_for_place` has returned for this location."""
    return has_mark(uuid, _hash(server, *loose_place_of(location)))


def _hash(server: Server, *parts: str) -> bytes:
    return hashlib.sha256(mark_of(server) + "\n".join(parts).encode("utf-8", "surrogatepass")).digest()[:4]
