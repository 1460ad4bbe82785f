"""Answers that are a table, in gzip for clients that accept it."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.bodies.table.tables import loaded_json, loaded_parts
from app.api.compression import MIN_GZIP_BYTES, accepts_gzip
from app.api.responses.answers import JSON, NO_CONFIG, Answer, Header, json_answer
from app.api.responses.etags import ETAG, etag
from app.api.responses.packed_answers import PackedAnswers
from app.api.scope_keys import HEADERS
from app.catalog.context.kinds import LoadedTable
from app.formats.metadata.files import MetadataJson

_GZIP: Header = (b"content-encoding", b"gzip")
_VARY: Header = (b"vary", b"accept-encoding")


class PackableTable(Response):
    """A table with its ETag."""

    def __init__(
        self, answers: PackedAnswers, location: str, metadata: bytes, config: Mapping[str, str], tag: bytes
    ) -> None:
        """Prepare the answer.

        Args:
            answers: where it is kept in gzip.
            location: of the metadata file.
            metadata: the metadata in JSON.
            config: settings for the client; what has the same tag has the same ones, or none.
            tag: the ETag.
        """
        self.status_code = 200
        self.background = None
        self.raw_headers = [JSON, (ETAG, tag), _VARY]
        self._answers = answers
        self._parts: tuple[bytes, ...] = loaded_parts(location, metadata, config)
        self._key = tag, bool(config)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, parts = sum(map(len, self._parts)), self._parts
        if size >= MIN_GZIP_BYTES and accepts_gzip(scope[HEADERS].get(b"accept-encoding", b"")):
            packed = await self._answers.pack(self._key, parts)
            self.raw_headers.append(_GZIP)
            size, parts = len(packed), (packed,)
        self.raw_headers.append((b"content-length", b"%d" % size))
        await Answer(200, self.raw_headers, *parts)(scope, receive, send)


def table_answer(
    answers: PackedAnswers, loaded: LoadedTable, config: Mapping[str, str] = NO_CONFIG
) -> Response:
    """Answer with a table and, once it has a metadata file, its ETag."""
    if loaded.location is None:
        return json_answer(loaded_json(loaded.location, loaded.json, config))
    return PackableTable(answers, loaded.location, loaded.json, config, tag_of(loaded))


def tag_of(loaded: LoadedTable) -> bytes:
    """Return the ETag of a table that has a metadata file."""
    assert loaded.location is not None
    made = MetadataJson.of(loaded.metadata, loaded.json, loaded.registration)
    return etag(loaded.location, made.version)
