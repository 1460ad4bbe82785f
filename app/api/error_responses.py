"""The status, the Iceberg error type and the body that each error is answered with."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson

from app import errors, recoveries
from app.engine.change.updates import Change
from app.engine.model.identifiers import LEVEL_SEPARATOR
from app.engine.model.snapshot import Snapshot
from app.errors import (
    CommitFailed,
    DanglingRef,
    FileExists,
    IcetowerError,
    IdempotencyKeyTaken,
    PointerMoved,
    RequirementFailed,
    StaleUpdate,
    Unavailable,
)
from app.standings import Standing

STATUS_AND_TYPE: dict[type[IcetowerError], tuple[int, str]] = {
    recoveries.Protected: (403, "ForbiddenException"),
    recoveries.NoSuchDropped: (404, "NoSuchDroppedException"),
    recoveries.UndropRefused: (409, "AlreadyExistsException"),
    recoveries.OrphansWait: (409, "CommitFailedException"),
    recoveries.RestoreRefused: (400, "BadRequestException"),
    recoveries.InvalidMoment: (400, "BadRequestException"),
    recoveries.PastIsReadOnly: (403, "ForbiddenException"),
    # Not 404, behind which clients hide the message.
    recoveries.PastIsGone: (410, "GoneException"),
    errors.BadRequest: (400, "BadRequestException"),
    errors.InvalidRequest: (400, "BadRequestException"),
    errors.InvalidName: (400, "BadRequestException"),
    errors.InvalidPageToken: (400, "BadRequestException"),
    errors.InvalidFilter: (400, "BadRequestException"),
    errors.InvalidUpdate: (400, "BadRequestException"),
    # Java shows the message of this type, and of no other 400, unchanged.
    errors.InvalidViewVersion: (400, "IllegalArgumentException"),
    errors.InvalidMetadata: (400, "BadRequestException"),
    errors.InvalidLocation: (400, "BadRequestException"),
    errors.InvalidSetting: (400, "BadRequestException"),
    errors.InvalidRefMove: (400, "ValidationException"),
    errors.InvalidDataFile: (400, "BadRequestException"),
    errors.PurgeRefused: (400, "BadRequestException"),
    errors.ExpiryRefused: (400, "BadRequestException"),
    errors.OrphansRefused: (400, "BadRequestException"),
    # Not 409: clients would build the same snapshot again. After this type Java cleans up.
    errors.CommitRefused: (400, "BadRequestException"),
    errors.RequestTooLarge: (413, "RequestTooLargeException"),
    errors.UnsupportedMediaType: (415, "UnsupportedMediaTypeException"),
    errors.NotAuthenticated: (401, "NotAuthorizedException"),
    errors.NotAllowed: (403, "ForbiddenException"),
    errors.NotFound: (404, "NotFoundException"),
    errors.NoSuchWarehouse: (404, "NoSuchWarehouseException"),
    errors.NoSuchNamespace: (404, "NoSuchNamespaceException"),
    errors.NoSuchTable: (404, "NoSuchTableException"),
    errors.NoSuchView: (404, "NoSuchViewException"),
    errors.NoSuchSnapshot: (404, "NoSuchSnapshotException"),
    errors.NoSuchRef: (404, "NoSuchRefException"),
    errors.NoSuchPlan: (404, "NoSuchPlanIdException"),
    errors.NoSuchPlanTask: (404, "NoSuchPlanTaskException"),
    errors.NoSuchCommit: (404, "NoSuchCommitException"),
    errors.NoSuchJob: (404, "NoSuchJobException"),
    errors.MetadataFileMissing: (404, "NotFoundException"),
    errors.FileMissing: (404, "NotFoundException"),
    errors.NoSuchRoute: (404, "NoSuchRouteException"),
    errors.AlreadyExists: (409, "AlreadyExistsException"),
    errors.WarehouseExists: (409, "AlreadyExistsException"),
    errors.NamespaceExists: (409, "AlreadyExistsException"),
    errors.TableExists: (409, "AlreadyExistsException"),
    errors.ViewExists: (409, "AlreadyExistsException"),
    # Not CommitFailedException, after which a client would try again.
    errors.FilesAlreadyLive: (409, "AlreadyExistsException"),
    errors.JobConflict: (409, "JobConflictException"),
    errors.NamespaceNotEmpty: (409, "NamespaceNotEmptyException"),
    errors.WarehouseNotEmpty: (409, "WarehouseNotEmptyException"),
    errors.CommitFailed: (409, "CommitFailedException"),
    errors.RequirementFailed: (409, "CommitFailedException"),
    errors.StaleUpdate: (409, "CommitFailedException"),
    errors.DanglingRef: (409, "CommitFailedException"),
    errors.PointerMoved: (409, "CommitFailedException"),
    errors.ManifestsReplaced: (409, "CommitFailedException"),
    errors.FilesBeingDeleted: (409, "CommitFailedException"),
    errors.NotSupported: (406, "UnsupportedOperationException"),
    errors.MethodNotAllowed: (405, "MethodNotAllowedException"),
    errors.AmbiguousProperties: (422, "UnprocessableEntityException"),
    errors.IdempotencyKeyReused: (422, "UnprocessableEntityException"),
    errors.CommitStateUnknown: (500, "CommitStateUnknownException"),
    # For a commit this means that its outcome is not known: nothing here says that it did not land.
    errors.GivenUp: (504, "GatewayTimeoutException"),
    errors.CorruptMetadata: (500, "InternalServerError"),
    errors.CorruptTable: (500, "InternalServerError"),
    errors.Unavailable: (503, "ServiceUnavailableException"),
    errors.DatabaseBehind: (503, "ServiceUnavailableException"),
    errors.DatabaseUnavailable: (503, "ServiceUnavailableException"),
    errors.FilesUnavailable: (503, "ServiceUnavailableException"),
    errors.AccessRefused: (503, "ServiceUnavailableException"),
    errors.StoreNotOpened: (503, "ServiceUnavailableException"),
    errors.Throttled: (503, "SlowDownException"),
    errors.ClockBehind: (503, "ServiceUnavailableException"),
    # Caught inside the catalog; outside it, each is an error of the server.
    errors.FileExists: (500, "InternalServerError"),
    errors.IdempotencyKeyTaken: (500, "InternalServerError"),
}
"""One row for each error; a class without one is answered like its nearest ancestor."""

RETRY_AFTER_SECONDS = 1
MAX_MESSAGE_LENGTH = 4_000
MAX_TEXT_LENGTH = 1_000
"""The limit for a text in the machine-readable part; locations and names are shorter."""


def status_and_type(error: BaseException) -> tuple[int, str]:
    """Return the HTTP status and the Iceberg error type that an exception is answered with."""
    return status_and_type_of(type(error))


def status_and_type_of(error: type[BaseException]) -> tuple[int, str]:
    """Return the same for a class of exceptions."""
    for kind in error.__mro__:
        if kind in STATUS_AND_TYPE:
            return STATUS_AND_TYPE[kind]
    return 500, "InternalServerError"


def message_for_client(error: BaseException, request_id: str) -> str:
    """Return the message for the client. For an unexpected exception it has only the request id."""
    if isinstance(error, IcetowerError) and not isinstance(error, FileExists | IdempotencyKeyTaken):
        # Names come from requests: a lone surrogate in a name must not break the answer.
        return _shortened(str(error), MAX_MESSAGE_LENGTH)
    return f"Internal server error; the server's log says more under request id {request_id}"


def is_retry_safe(error: BaseException) -> bool:
    """Say whether the same request may be sent again at once: nothing was changed."""
    return isinstance(error, Unavailable)


def error_body(status: int, kind: str, message: str, conflict: dict[str, Any] | None = None) -> bytes:
    """Return the JSON of an error; `conflict` is our own member of the standard error."""
    error: dict[str, Any] = {"message": message, "type": kind, "code": status}
    if conflict is not None:
        error["conflict"] = conflict
    return orjson.dumps({"error": error})


def oauth_error_body(error: str, description: str) -> bytes:
    """Return the JSON of an error of a token endpoint: its shape is that of RFC 6749, 5.2."""
    return orjson.dumps({"error": error, "error_description": description})


def body_of(error: BaseException, request_id: str, prefix: str | None) -> bytes:
    """Return the JSON that an exception is answered with; `prefix` as for `conflict_of`."""
    status, kind = status_and_type(error)
    return error_body(status, kind, message_for_client(error, request_id), conflict_of(error, prefix))


def error_object(error: IcetowerError) -> dict[str, Any]:
    """Return the standard error object of a refusal that is part of an answer."""
    status, kind = status_and_type(error)
    return {"message": message_for_client(error, ""), "type": kind, "code": status}


def conflict_of(error: BaseException, prefix: str | None) -> dict[str, Any] | None:
    """Return the facts of a failed commit for programs; None for any other error.

    `prefix` is the warehouse that the request's path names, if it does.
    """
    if not isinstance(error, CommitFailed):
        return None
    facts: dict[str, Any] = {}
    match error:
        case RequirementFailed(requirement=Change() as requirement):
            facts["requirement"] = requirement_object(requirement)
            facts |= {"expected": error.expected, "found": error.found}
        case StaleUpdate(counter=str()):
            facts |= {"counter": error.counter, "expected": error.expected, "found": error.found}
            if isinstance(error.snapshot, Snapshot):
                facts["snapshot-id"] = error.snapshot.snapshot_id
        case DanglingRef(ref=str()):
            facts |= {"ref": error.ref, "snapshot-id": error.snapshot_id}
        case PointerMoved():
            facts["attempts"] = error.attempts
    if error.not_rebased is not None:
        facts["not-rebased"] = error.not_rebased.message
    if error.standing is not None:
        facts |= _standing(error.standing, prefix)
    return sendable(facts) if facts else None


def requirement_object(requirement: Change) -> dict[str, Any]:
    """Return a requirement as it was sent."""
    return requirement.model_dump(mode="python", by_alias=True)


def sendable(value: Any) -> Any:
    """Return a JSON value whose texts, which come from requests, are valid and not too long."""
    match value:
        case str():
            return _shortened(value, MAX_TEXT_LENGTH)
        case dict():
            return {key: sendable(item) for key, item in value.items()}
        case list() | tuple():
            return [sendable(item) for item in value]
    return value


def _shortened(text: str, longest: int) -> str:
    """Return a text as it can be sent; what is cut off is not looked at."""
    shown = text[:longest].encode("utf-8", "replace").decode("utf-8")
    return shown if len(text) <= longest else shown + "…"


def _standing(standing: Standing, prefix: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"identifier": {"namespace": standing.namespace, "name": standing.name}}
    if standing.metadata_location is not None:
        facts["metadata-location"] = standing.metadata_location
        facts["conflicts"] = f"{_table_path(standing, prefix)}/conflicts"
    if standing.landed is not None:
        facts["snapshot-count"] = standing.landed_count
        facts["snapshots"] = [
            {
                "snapshot-id": snapshot.snapshot_id,
                "sequence-number": snapshot.sequence_number,
                "timestamp-ms": snapshot.timestamp_ms,
                **({"operation": snapshot.operation} if snapshot.operation is not None else {}),
            }
            for snapshot in standing.landed
        ]
    return facts


def _table_path(standing: Standing, prefix: str | None) -> str:
    pieces = ["v1", *([] if prefix is None else [prefix])]
    pieces += ["namespaces", LEVEL_SEPARATOR.join(standing.namespace), "tables", standing.name]
    return "".join(f"/{quote(piece, safe='')}" for piece in pieces)
