"""Every error that Icetower raises on purpose, as one tree. Nothing here knows of HTTP.

IcetowerError
├── BadRequest                 the request is wrong whatever the state of the catalog
│   ├── InvalidRequest         a body, parameter or header that cannot be understood
│   ├── InvalidName            a namespace, table, view or warehouse name that cannot be used
│   ├── InvalidPageToken
│   ├── InvalidFilter          a filter that cannot be understood, or does not fit the table's columns
│   ├── InvalidUpdate          an update that cannot be applied to any, or to this, metadata
│   ├── InvalidViewVersion     a view version with two queries for one dialect
│   ├── InvalidMetadata        a metadata document that breaks the table format
│   ├── InvalidLocation        a location outside the warehouse, or not a location
│   ├── InvalidSetting         a warehouse or server setting that makes no sense
│   ├── InvalidRefMove         a branch or tag that cannot be moved there
│   ├── InvalidDataFile        a file that cannot be appended to the table
│   ├── PurgeRefused           gc.enabled=false
│   ├── ExpiryRefused          the same, or a ref names a snapshot that was to go
│   ├── OrphansRefused         the same, or it is not known what reaches a table's files
│   └── CommitRefused          it would lose data, says the guard; or what it builds on cannot be read
├── RequestTooLarge, NotAuthenticated, NotAllowed
├── UnsupportedMediaType       a body that is not announced as JSON
├── NotFound
│   ├── NoSuchWarehouse, NoSuchNamespace, NoSuchTable, NoSuchView, NoSuchRoute
│   ├── NoSuchSnapshot, NoSuchRef, NoSuchPlan, NoSuchPlanTask
│   ├── NoSuchCommit           no request that was asked for has landed
│   ├── NoSuchJob              no job of upkeep has this id
│   ├── MetadataFileMissing    the pointer names a file that is gone
│   └── FileMissing            bytes asked for at a location that has none
├── AlreadyExists
│   ├── WarehouseExists, NamespaceExists, TableExists, ViewExists
│   └── FilesAlreadyLive       files to be appended that a branch has already
├── NamespaceNotEmpty, WarehouseNotEmpty
├── JobConflict                another job of upkeep holds the table, or this one does not run any more
├── CommitFailed               the pointer certainly did not move
│   ├── RequirementFailed      the table is not what the client built on
│   ├── StaleUpdate            a sequence number or row id behind the table's
│   ├── DanglingRef            an update would leave a ref without its snapshot
│   ├── PointerMoved           other commits won every attempt
│   ├── ManifestsReplaced      others replaced the manifests that were to be rewritten, each time
│   └── FilesBeingDeleted      what is to be registered or committed is being purged or expired
├── NotSupported, MethodNotAllowed
├── AmbiguousProperties        a key both set and removed
├── IdempotencyKeyReused       one key, two different requests
├── CommitStateUnknown         whether the change landed is not known
├── GivenUp                    work was broken off: its client has gone, or its time is over
├── CorruptMetadata            a metadata file of ours that cannot be read
│   └── CorruptTable           files of a table that contradict its metadata
├── DatabaseBehind             the database's revision is not the one this build knows
└── Unavailable                nothing was changed; try again
    ├── DatabaseUnavailable, Throttled, ClockBehind
    └── FilesUnavailable
        ├── AccessRefused      the store says that this may not be done, and has not done it
        └── StoreNotOpened     the server's own settings of the store make no sense

FileExists and IdempotencyKeyTaken never reach a caller of the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.standings import RebaseRefusal, Standing


class IcetowerError(Exception):
    """Base of every deliberate error; `str(error)` is one sentence for the person who reads it."""


class BadRequest(IcetowerError):
    """The request is wrong whatever the state of the catalog."""


class InvalidRequest(BadRequest):
    """A body, parameter or header that cannot be understood."""


class InvalidName(BadRequest):
    """A name that cannot be used."""


class InvalidPageToken(BadRequest):
    """A page token that this server did not hand out."""

    def __init__(self, token: str) -> None:
        super().__init__(f"Invalid page token: {token[:100]!r}")


class InvalidFilter(BadRequest):
    """A filter that cannot be understood, or does not fit the columns it is used on."""


class InvalidUpdate(BadRequest):
    """An update that cannot be applied."""


class InvalidViewVersion(BadRequest):
    """A view version that contradicts itself."""


class InvalidMetadata(BadRequest):
    """A metadata document that breaks the table format."""


class InvalidLocation(BadRequest):
    """A location that this warehouse may not use."""


class InvalidSetting(BadRequest):
    """A setting that makes no sense."""


class InvalidRefMove(BadRequest):
    """A branch or tag that cannot be moved there: the snapshots are not related as needed."""


class InvalidDataFile(BadRequest):
    """A file that cannot be appended: it is not there, or does not fit the table."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"Cannot append {path[:1000]}: {reason}")


class PurgeRefused(BadRequest):
    """A purge of a table whose files must not be deleted."""

    def __init__(self, identifier: object, *, is_read_only: bool = False) -> None:
        reason = (
            "it is read-only here, and its files belong to another catalog. Drop it without purge"
            if is_read_only
            else "gc.enabled is false, so its files may belong to others. "
            "Drop it without purge, or set gc.enabled to true first"
        )
        super().__init__(f"Cannot purge {identifier}: {reason}")


class ExpiryRefused(BadRequest):
    """Snapshots that were to expire must not; the message says which and why."""


class OrphansRefused(BadRequest):
    """Orphans of a table are not looked for or not marked; the message says why."""


class CommitRefused(BadRequest):
    """A commit that the guard takes for a lost update, or that needs what cannot be read."""


class RequestTooLarge(IcetowerError):
    """A request body larger than the server accepts."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"Request body is larger than the limit of {limit_bytes} bytes")


class UnsupportedMediaType(IcetowerError):
    """A request body that is not announced as JSON."""

    def __init__(self, given: str | None) -> None:
        named = "no Content-Type" if given is None else f"Content-Type {given!r}"
        super().__init__(f"The request has a body and {named}: send it as application/json")


class NotAuthenticated(IcetowerError):
    """The caller did not say, or could not prove, who they are."""


class NotAllowed(IcetowerError):
    """The caller may not do this."""


class NotFound(IcetowerError):
    """What was asked for is not there."""


class NoSuchWarehouse(NotFound):
    """No warehouse has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Warehouse does not exist: {name}")


class NoSuchNamespace(NotFound):
    """No namespace has this name."""

    def __init__(self, namespace: object) -> None:
        super().__init__(f"Namespace does not exist: {namespace}")


class NoSuchTable(NotFound):
    """No table has this name."""

    def __init__(self, identifier: object) -> None:
        super().__init__(f"Table does not exist: {identifier}")


class NoSuchView(NotFound):
    """No view has this name."""

    def __init__(self, identifier: object) -> None:
        super().__init__(f"View does not exist: {identifier}")


class NoSuchSnapshot(NotFound):
    """The table has no such snapshot, or none any more."""

    def __init__(self, wanted: object) -> None:
        super().__init__(f"Snapshot does not exist: {wanted}")


class NoSuchRef(NotFound):
    """The table has no branch or tag of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Branch or tag does not exist: {name}")


class NoSuchPlan(NotFound):
    """The table has no such plan of a scan, or none any more."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(f"Plan does not exist: {plan_id[:200]}")


class NoSuchPlanTask(NotFound):
    """No plan of this table has such a task, or what it is about has gone."""

    def __init__(self) -> None:
        super().__init__("Plan task does not exist: plan the scan again")


class NoSuchCommit(NotFound):
    """No request that was asked for has landed, and none is known to be at work."""


class NoSuchJob(NotFound):
    """The table has no job of upkeep with this id."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Job does not exist: {job_id[:100]}")


class MetadataFileMissing(NotFound):
    """The pointer names a file that is gone, or in whose place another table's is."""

    def __init__(self, location: str, because: str = "") -> None:
        self.because = because
        """What is there instead; empty if nothing is."""
        super().__init__(f"Failed to open input stream for file: {location}{because}")


class NoSuchRoute(NotFound):
    """No route serves this path."""


class FileMissing(NotFound):
    """There is no file at this location."""

    def __init__(self, location: str) -> None:
        self.location = location
        super().__init__(f"File does not exist: {location}")


class JobConflict(IcetowerError):
    """Another job of upkeep holds the table, or this one does not run any more."""


class AlreadyExists(IcetowerError):
    """The name is taken."""


class WarehouseExists(AlreadyExists):
    """A warehouse has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Warehouse already exists: {name}")


class NamespaceExists(AlreadyExists):
    """A namespace has this name."""

    def __init__(self, namespace: object) -> None:
        super().__init__(f"Namespace already exists: {namespace}")


class TableExists(AlreadyExists):
    """A table has this name; the message depends on what the name was wanted for."""


class ViewExists(AlreadyExists):
    """A view has this name; the message depends on what the name was wanted for."""


class FilesAlreadyLive(AlreadyExists):
    """Files to be appended that the branch has: their rows would be there twice."""

    def __init__(self, branch: str, paths: Sequence[str]) -> None:
        more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
        super().__init__(
            f"Cannot append files that branch {branch} has already: {', '.join(paths[:5])}{more}. Nothing was changed"
        )


class NamespaceNotEmpty(IcetowerError):
    """A namespace that still holds tables, views or namespaces cannot be dropped."""

    def __init__(self, namespace: object, contents: str) -> None:
        super().__init__(f"Namespace {namespace} is not empty. It contains {contents}")


class WarehouseNotEmpty(IcetowerError):
    """A warehouse that still holds namespaces cannot be dropped."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Warehouse {name} is not empty: drop its namespaces first, and let the purges of their tables finish"
        )


class CommitFailed(IcetowerError):
    """The commit certainly did not happen.

    Attributes:
        standing: the table at that time, once the catalog has added it.
        not_rebased: why it was not rebased, if the table asks for that.
    """

    standing: Standing | None = None
    not_rebased: RebaseRefusal | None = None


class RequirementFailed(CommitFailed):
    """The table is not what the client built on.

    Attributes:
        requirement: what was demanded; None where it was not demanded in the protocol's form.
        expected: the value that was demanded; None for nothing.
        found: the value that is there; None for nothing.
    """

    def __init__(
        self, reason: str, requirement: object = None, expected: object = None, found: object = None
    ) -> None:
        self.requirement = requirement
        self.expected = expected
        self.found = found
        super().__init__(f"Requirement failed: {reason}")


class StaleUpdate(CommitFailed):
    """A sequence number or row id that the table has already passed; refresh and try again.

    Attributes:
        counter: which of the table's numbers has moved on, in the spec's words.
        expected: the most it may have been when the commit was prepared.
        found: what it is.
        snapshot: the snapshot that carries the stale number.
    """

    def __init__(
        self,
        reason: str,
        counter: str | None = None,
        expected: int | None = None,
        found: int | None = None,
        snapshot: object = None,
    ) -> None:
        self.counter = counter
        self.expected = expected
        self.found = found
        self.snapshot = snapshot
        super().__init__(f"Validation failed, please retry: {reason}")


class DanglingRef(CommitFailed):
    """An update would remove the snapshot of a ref that the same commit keeps."""

    def __init__(self, reason: str, ref: str | None = None, snapshot_id: int | None = None) -> None:
        self.ref = ref
        self.snapshot_id = snapshot_id
        super().__init__(reason)


class PointerMoved(CommitFailed):
    """Other commits won every attempt."""

    def __init__(self, identifier: object, attempts: int) -> None:
        self.attempts = attempts
        super().__init__(
            f"Cannot commit to {identifier}: other commits won all {attempts} attempts, please retry"
        )


class FilesBeingDeleted(CommitFailed):
    """What is to be registered or committed has files that are being deleted."""

    def __init__(self, location: str, kind: str, identifier: str, *, is_registration: bool = True) -> None:
        word = {"purge": "purge", "expire": "expiry"}.get(kind, "deletion of orphans")
        what = f"Cannot commit: files in {location}"
        if is_registration:
            what = f"Cannot register {location}: its files"
        super().__init__(f"{what} are being deleted by the {word} of {identifier}, which has begun")


class ManifestsReplaced(CommitFailed):
    """Other commits have replaced manifests that were to be rewritten."""


class NotSupported(IcetowerError):
    """A legitimate wish that this server does not fulfil."""


class MethodNotAllowed(IcetowerError):
    """The route exists, but not for this HTTP method."""


class AmbiguousProperties(IcetowerError):
    """A property that one request both sets and removes."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__(f"Cannot both set and remove properties: {', '.join(keys)}")


class IdempotencyKeyReused(IcetowerError):
    """One Idempotency-Key with two different requests."""

    def __init__(self, key: str) -> None:
        super().__init__(f"Idempotency-Key {key!r} was already used for a different request")


class CommitStateUnknown(IcetowerError):
    """Whether the change landed is not known; nothing was deleted."""


class GivenUp(IcetowerError):
    """Work was broken off between two files: its client has gone, or its time is over."""


class CorruptMetadata(IcetowerError):
    """A file of a table cannot be read: its metadata, a manifest list or a manifest."""

    def __init__(self, location: str, reason: str) -> None:
        reason = reason.removeprefix("Cannot read metadata: ")
        # A reader that has named the file has said all of it.
        super().__init__(reason if location in reason else f"Cannot read {location}: {reason}")


class CorruptTable(CorruptMetadata):
    """The files of a table contradict its metadata."""

    def __init__(self, location: str, reason: str) -> None:
        super(CorruptMetadata, self).__init__(f"Cannot use files of the table at {location}: {reason}")


class DatabaseBehind(IcetowerError):
    """The database's revision is not the one that this build knows."""


class Unavailable(IcetowerError):
    """Something the server needs does not answer. Nothing was changed."""


class DatabaseUnavailable(Unavailable):
    """The database does not answer. Nothing was changed."""


class FilesUnavailable(Unavailable):
    """The file store does not answer, or refuses."""


class AccessRefused(FilesUnavailable):
    """The file store says that this may not be done: it was not done, and will not be."""


class StoreNotOpened(FilesUnavailable):
    """The settings of a store make no sense, and the caller has not made them."""


class Throttled(Unavailable):
    """The file store asks to slow down."""


class ClockBehind(Unavailable):
    """This server's clock is behind, so that it cannot judge the times in a request."""

    def __init__(self, now_ms: int, changed_ms: int) -> None:
        super().__init__(
            f"The clock of this server is behind: it says {now_ms}, but the last change was at {changed_ms} "
            "(milliseconds since 1970). Nothing was changed"
        )


class FileExists(IcetowerError):
    """A new file was to be written where one already is."""

    def __init__(self, location: str) -> None:
        super().__init__(f"File already exists: {location}")


class IdempotencyKeyTaken(IcetowerError):
    """Another request finished under this Idempotency-Key first; its answer is the answer."""
