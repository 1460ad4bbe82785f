"""Files in Azure's Blob Storage, through Azure's own library."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import BlobClient, BlobProperties, BlobServiceClient, ContainerClient, LinearRetry

from app.engine.model.ids import Location
from app.errors import AccessRefused, FileExists, FileMissing
from app.fileio.failures import hidden, object_store_failure
from app.fileio.files import ListedFile
from app.fileio.network.object_store import UUID_IN_NAME, check_names_file
from app.fileio.tails import Tail

_CONNECT_S: Final = 2
_ANSWER_S: Final = 3
"""As to S3: a store that hangs holds the first requests, which are asked twice, for so long."""
_LONG_ANSWER_S: Final = 8
"""For what takes a store longer: to keep a file, and to list a page."""
_MOST_CONNECTIONS: Final = 128
"""Kept for calls at one time; the library keeps 10, and then makes one and logs a warning for each call."""
_FIRST_BYTES: Final = 4 << 20
"""Come with the first answer, which says how large a file is."""
_LATER_BYTES: Final = 32 << 20
_BLOCK_BYTES: Final = 256 << 10
"""So much of an answer is read at a time."""
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""What Azure's library raises where an answer lacks what it looks for in it."""
_FAILURES = (AzureError, OSError, *_UNREADABLE)

_KEPT_COPIES: Final = {
    "SnapshotsPresent": (
        "the blob has snapshots, which do not go with it, for somebody has made them to keep it. Delete them, by a "
        "rule of Azure's lifecycle management perhaps; what waits goes on by itself then"
    ),
    "BlobImmutableDueToPolicy": "a policy keeps it for a time; what waits goes on by itself then",
    "BlobImmutableDueToLegalHold": "a legal hold keeps it; when that is gone, what waits goes on by itself",
}
_NUMBERS: Final = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*", re.IGNORECASE)
"""What is different each time in the same reason: times, and ids of requests."""
_MOST_REASONS: Final = 100

log = logging.getLogger(__name__)

# They write a line for each request, and urllib3 whole URLs, which have the tokens. Tokens that are not to be had are
# logged below.
for _logger, _level in (
    ("azure", logging.WARNING),
    ("azure.identity", logging.ERROR),
    ("urllib3", logging.WARNING),
):
    logging.getLogger(_logger).setLevel(_level)


@dataclass(frozen=True, slots=True)
class Blob:
    """A location as Azure has it: an account's storage, a container, and a name in it."""

    service: BlobServiceClient
    container: str
    name: str

    def client(self) -> BlobClient:
        return self.service.get_blob_client(self.container, self.name)

    def container_client(self) -> ContainerClient:
        return self.service.get_container_client(self.container)


def open_service(url: str, credential: Any) -> BlobServiceClient:
    """Return an account's Blob Storage; safe to use from many threads.

    Args:
        url: where it is.
        credential: one of Azure's library.
    """
    transport = RequestsTransport(
        connection_timeout=_CONNECT_S,
        read_timeout=_ANSWER_S,
        connection_data_block_size=_BLOCK_BYTES,
        # Without TLS it is an emulator near by, for which a proxy of the machine is not meant.
        use_env_settings=url.startswith("https:"),
    )
    transport.open()
    session: Any = transport.session
    for adapter in session.adapters.values():
        adapter.init_poolmanager(1, _MOST_CONNECTIONS)
    return BlobServiceClient(
        url,
        credential=credential,
        transport=transport,
        retry_policy=LinearRetry(backoff=1, retry_total=1, random_jitter_range=1),
        permit_redirects=False,
        raw_response_hook=_check_answer,
        max_single_get_size=_FIRST_BYTES,
        max_chunk_get_size=_LATER_BYTES,
    )


def _check_answer(answer: Any) -> None:
    """Refuse what is not Azure's: a proxy's page is no listing, its 404 no missing file."""
    if "x-ms-request-id" not in answer.http_response.headers:
        # No error of the library's, which would ask again.
        raise OSError(f"HTTP status {answer.http_response.status_code}: the answer is not Azure's")


def _ignore(_size_bytes: int) -> None:
    return None


class AzureStore:
    """A FileIO over Blob Storage.

    Accounts with a hierarchical namespace answer the same requests; there a folder is a blob that says so, as it is
    where Hadoop has made one. To this store it is no file.

    Args:
        locate: finds the blob of a location; raises InvalidLocation.
        secrets: never shown in an error.
    """

    def __init__(self, locate: Callable[[Location], Blob], *, secrets: tuple[str, ...] = ()) -> None:
        self._locate = locate
        self._secrets = secrets
        self._logged = set[str]()

    def read(self, location: Location, expect: Callable[[int], None] = _ignore) -> bytes:
        content = self.read_at_most(location, sys.maxsize, expect)
        assert content is not None
        return content

    def read_at_most(
        self, location: Location, max_bytes: int, expect: Callable[[int], None] = _ignore
    ) -> bytes | None:
        """Return a file's content, or None if it is larger; `expect` hears its size before."""
        with self._translated("read", location):
            stream = self._file_at(location).client().download_blob()
            if _is_folder(stream.properties):
                raise FileMissing(location)
            if stream.size > max_bytes:
                return None
            expect(stream.size)
            return _whole(stream.readall(), stream.size)

    def read_tail(self, location: Location, most_bytes: int, expect: Callable[[int], None] = _ignore) -> Tail:
        """Return the last bytes of a file and its size; `expect` hears how many bytes are read."""
        with self._translated("read", location):
            client = self._file_at(location).client()
            said = client.get_blob_properties()
            if _is_folder(said):
                raise FileMissing(location)
            wanted = min(_size(said), most_bytes)
            if not wanted:
                return Tail(said.size, b"")
            expect(wanted)
            stream = client.download_blob(offset=said.size - wanted, length=wanted)
            return Tail(said.size, _whole(stream.readall(), wanted))

    def write_new(self, location: Location, content: bytes) -> None:
        with self._translated("write", location):
            client = self._file_at(location).client()
            try:
                client.upload_blob(content, retry_total=0, read_timeout=_LONG_ANSWER_S)
            except (ServiceRequestError, ServiceResponseError) as error:
                # It may have been put. Where the name is unique by itself, what is there then is ours.
                is_late = isinstance(error, (ServiceRequestTimeoutError, ServiceResponseTimeoutError))
                if is_late or not UUID_IN_NAME.search(location):
                    raise
                client.upload_blob(content, overwrite=True, retry_total=0, read_timeout=_LONG_ANSWER_S)

    def delete(self, location: Location) -> None:
        with self._translated("delete", location):
            try:
                self._file_at(location).client().delete_blob()
            except HttpResponseError as error:
                code = _code(error)
                if code in _KEPT_COPIES:
                    raise AccessRefused(f"Cannot delete {location}: {_KEPT_COPIES[code]}") from None
                # A folder that is not empty is no file.
                if not _is_missing(error) and code != "DirectoryIsNotEmpty":
                    raise

    def delete_empty_folder(self, location: Location) -> bool:  # noqa: ARG002 - folders are left to who made them
        return False

    def exists(self, location: Location) -> bool:
        return self.find_file(location) is not None

    def find_file(self, location: Location) -> ListedFile | None:
        with self._translated("read", location):
            try:
                said = self._file_at(location).client().get_blob_properties()
            except HttpResponseError as error:
                if _is_missing(error):
                    return None
                raise
            return None if _is_folder(said) else _listed(location, said)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        folder = Location(prefix.rstrip("/"))
        with self._translated("list", folder):
            blob = self._locate(folder)
            start = f"{blob.name}/" if blob.name else ""
            found = blob.container_client().list_blobs(
                name_starts_with=start, include=["metadata"], read_timeout=_LONG_ANSWER_S
            )
            pages: Any = found.by_page()  # typed without the token that it has
        following = None
        while True:
            with self._translated("list", folder):
                try:
                    page = list(next(pages, ()))
                except HttpResponseError as error:
                    if _is_missing(error):
                        return
                    raise
                listed = [
                    _listed(Location(f"{folder}/{said.name[len(start) :]}"), said)
                    for said in page
                    if not (_is_folder(said) or said.name.endswith("/"))
                ]
                if pages.continuation_token and pages.continuation_token == following:
                    raise OSError("the listing goes round")
                following = pages.continuation_token
            yield from listed
            if not following:
                return

    def _file_at(self, location: Location) -> Blob:
        check_names_file(location)
        return self._locate(location)

    @contextlib.contextmanager
    def _translated(self, verb: str, location: Location) -> Iterator[None]:
        try:
            yield
        except HttpResponseError as error:
            if verb == "read" and _is_missing(error):
                raise FileMissing(location) from error
            if verb == "write" and _code(error) in {"BlobAlreadyExists", "ConditionNotMet"}:
                raise FileExists(location) from error
            if isinstance(error, ClientAuthenticationError) and error.response is None:
                self._log_once(location, error)
            reason = _reason(error)
            raise object_store_failure(verb, location, reason, self._secrets) from reason
        except _FAILURES as error:
            # The log shows the cause: not the library's own error, in which secrets are not hidden.
            reason = _reason(error)
            raise object_store_failure(verb, location, reason, self._secrets) from reason

    def _log_once(self, location: Location, error: ClientAuthenticationError) -> None:
        """Log why there is no token: all of it, where the answer has one line."""
        reason = " ".join(hidden(error, self._secrets).split())
        kind = _NUMBERS.sub("", reason)
        if kind not in self._logged and len(self._logged) < _MOST_REASONS:
            self._logged.add(kind)
            log.warning("no token for %s, and others of its warehouse: %s", location, reason)


def _is_missing(error: HttpResponseError) -> bool:
    """Say whether Azure says that what was asked for is not there."""
    return error.status_code == 404 and bool(_code(error))


def _code(error: HttpResponseError) -> str:
    """Return what Azure calls an error; empty if the answer does not say."""
    headers = getattr(error.response, "headers", {})
    return str(headers.get("x-ms-error-code") or getattr(error, "error_code", None) or "")


def _reason(error: Exception) -> Exception:
    """Return an error of one line; the library's own may hold addresses and signed texts."""
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        first = (error.message or "").partition("\n")[0]
        return OSError(
            ": ".join(part for part in (f"HTTP status {error.status_code}", _code(error), first) if part)
        )
    if isinstance(error, ServiceResponseTimeoutError):
        return OSError("no answer in time")
    if isinstance(error, AzureError):
        first = str(error.message).partition("\n")[0]
        if isinstance(error, ServiceRequestError):
            return OSError(f"no connection: {first}")
        return OSError(
            f"the answer ended early: {first}" if isinstance(error, ServiceResponseError) else first
        )
    # A UnicodeError is about a location with half a surrogate pair.
    if isinstance(error, _UNREADABLE) and not isinstance(error, UnicodeError):
        return OSError(f"the answer is not as Azure's are: {error}")
    return error


def _is_folder(said: BlobProperties) -> bool:
    """Say whether the metadata of a blob mark it as a folder."""
    metadata = {name.lower(): value.lower() for name, value in (said.metadata or {}).items()}
    return "true" in (metadata.get("hdi_isfolder"), metadata.get("is_directory"))


def _size(said: BlobProperties) -> int:
    if not isinstance(said.size, int):
        raise OSError("the answer does not say how large the blob is")
    return said.size


def _listed(location: Location, said: BlobProperties) -> ListedFile:
    if said.last_modified is None:
        raise OSError("the answer does not say when the blob was written")
    return ListedFile(location, _size(said), int(said.last_modified.timestamp() * 1000))


def _whole(content: bytes, size_bytes: int) -> bytes:
    if len(content) != size_bytes:
        raise OSError(f"The answer has {len(content)} bytes instead of {size_bytes}")
    return content
