"""Which status and Iceberg error type each error is answered with, and the error body itself."""

from __future__ import annotations

import orjson

from app.errors import (
    AlreadyExists,
    AmbiguousProperties,
    BadRequest,
    CommitFailed,
    CommitStateUnknown,
    CorruptMetadata,
    DanglingRef,
    DatabaseBehind,
    DatabaseUnavailable,
    ExpiryRefused,
    FileExists,
    FileMissing,
    FilesUnavailable,
    IcetowerError,
    IdempotencyKeyReused,
    IdempotencyKeyTaken,
    InvalidFilter,
    InvalidLocation,
    InvalidMetadata,
    InvalidName,
    InvalidPageToken,
    InvalidRefMove,
    InvalidRequest,
    InvalidSetting,
    InvalidUpdate,
    InvalidViewVersion,
    MetadataFileMissing,
    MethodNotAllowed,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchRef,
    NoSuchRoute,
    NoSuchSnapshot,
    NoSuchTable,
    NoSuchView,
    NoSuchWarehouse,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    NotSupported,
    PointerMoved,
    PurgeRefused,
    RequestTooLarge,
    RequirementFailed,
    StaleUpdate,
    TableExists,
    Throttled,
    Unavailable,
    ViewExists,
    WarehouseExists,
    WarehouseNotEmpty,
)

STATUS_AND_TYPE: dict[type[IcetowerError], tuple[int, str]] = {
    BadRequest: (400, "BadRequestException"),
    InvalidRequest: (400, "BadRequestException"),
    InvalidName: (400, "BadRequestException"),
    InvalidPageToken: (400, "BadRequestException"),
    InvalidFilter: (400, "BadRequestException"),
    InvalidUpdate: (400, "BadRequestException"),
    # Java shows the message of this type, and of no other 400, as it stands.
    InvalidViewVersion: (400, "IllegalArgumentException"),
    InvalidMetadata: (400, "BadRequestException"),
    InvalidLocation: (400, "BadRequestException"),
    InvalidSetting: (400, "BadRequestException"),
    InvalidRefMove: (400, "ValidationException"),
    PurgeRefused: (400, "BadRequestException"),
    ExpiryRefused: (400, "BadRequestException"),
    RequestTooLarge: (413, "RequestTooLargeException"),
    NotAuthenticated: (401, "NotAuthorizedException"),
    NotAllowed: (403, "ForbiddenException"),
    NotFound: (404, "NotFoundException"),
    NoSuchWarehouse: (404, "NoSuchWarehouseException"),
    NoSuchNamespace: (404, "NoSuchNamespaceException"),
    NoSuchTable: (404, "NoSuchTableException"),
    NoSuchView: (404, "NoSuchViewException"),
    NoSuchSnapshot: (404, "NoSuchSnapshotException"),
    NoSuchRef: (404, "NoSuchRefException"),
    MetadataFileMissing: (404, "NotFoundException"),
    FileMissing: (404, "NotFoundException"),
    NoSuchRoute: (404, "NoSuchRouteException"),
    AlreadyExists: (409, "AlreadyExistsException"),
    WarehouseExists: (409, "AlreadyExistsException"),
    NamespaceExists: (409, "AlreadyExistsException"),
    TableExists: (409, "AlreadyExistsException"),
    ViewExists: (409, "AlreadyExistsException"),
    NamespaceNotEmpty: (409, "NamespaceNotEmptyException"),
    WarehouseNotEmpty: (409, "WarehouseNotEmptyException"),
    CommitFailed: (409, "CommitFailedException"),
    RequirementFailed: (409, "CommitFailedException"),
    StaleUpdate: (409, "CommitFailedException"),
    DanglingRef: (409, "CommitFailedException"),
    PointerMoved: (409, "CommitFailedException"),
    NotSupported: (406, "UnsupportedOperationException"),
    MethodNotAllowed: (405, "MethodNotAllowedException"),
    AmbiguousProperties: (422, "UnprocessableEntityException"),
    IdempotencyKeyReused: (422, "UnprocessableEntityException"),
    CommitStateUnknown: (500, "CommitStateUnknownException"),
    CorruptMetadata: (500, "InternalServerError"),
    Unavailable: (503, "ServiceUnavailableException"),
    DatabaseBehind: (503, "ServiceUnavailableException"),
    DatabaseUnavailable: (503, "ServiceUnavailableException"),
    FilesUnavailable: (503, "ServiceUnavailableException"),
    Throttled: (503, "SlowDownException"),
    # Caught inside the catalog; a leak is a fault of ours.
    FileExists: (500, "InternalServerError"),
    IdempotencyKeyTaken: (500, "InternalServerError"),
}
"""One row for each error; a class without one is answered like its nearest ancestor that has."""

RETRY_AFTER_SECONDS = 1
MAX_MESSAGE_LENGTH = 4_000


def status_and_type(error: BaseException) -> tuple[int, str]:
    """Return the HTTP status and the Iceberg error type that an exception is answered with."""
    for kind in type(error).__mro__:
        if kind in STATUS_AND_TYPE:
            return STATUS_AND_TYPE[kind]
    return 500, "InternalServerError"


def message_for_client(error: BaseException, request_id: str) -> str:
    """Return the sentence a client may read; of an unexpected exception only the request id is told."""
    if isinstance(error, IcetowerError) and not isinstance(error, FileExists | IdempotencyKeyTaken):
        # Names come from requests: a lone surrogate in one must not break the answer.
        text = str(error).encode("utf-8", "replace").decode("utf-8")
        return text if len(text) <= MAX_MESSAGE_LENGTH else text[:MAX_MESSAGE_LENGTH] + "…"
    return f"Internal server error; the server's log says more under request id {request_id}"


def is_retry_safe(error: BaseException) -> bool:
    """Tell whether the same request may be sent again at once: nothing was changed."""
    return isinstance(error, Unavailable)


def error_body(status: int, kind: str, message: str) -> bytes:
    """Return the JSON that every Iceberg client expects in an answer that is not a success."""
    return orjson.dumps({"error": {"message": message, "type": kind, "code": status}})
