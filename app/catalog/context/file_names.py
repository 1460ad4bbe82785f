"""The mark of this catalog in the names of its metadata files."""

from __future__ import annotations

import secrets

from app.catalog.context.server import Server
from app.formats.metadata.own_names import marked

_KEY = "names of metadata files"


def mark_of(server: Server) -> bytes:
    """Return the bytes that all servers on this database, and no others, put into names."""
    return server.signing_keys.find_or_create(_KEY, secrets.token_bytes(4), server.now_ms())


def new_file_uuid(server: Server) -> str:
    """Return the uuid for the name of a new metadata file."""
    return marked(server.new_uuid(), mark_of(server))
