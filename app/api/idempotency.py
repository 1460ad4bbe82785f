"""Idempotency-Key: a mutation that is sent again is answered again, and done once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha256

from starlette.responses import Response

from app import telemetry
from app.api.dependencies import Visit
from app.api.entrance.commit_ids import KEY
from app.api.error_responses import body_of, status_and_type
from app.api.responses.answers import json_answer, no_content
from app.catalog.context.catalog import Catalog
from app.catalog.context.rows import IdempotencyClaim
from app.catalog.idempotency import find_outcome, record_refusal
from app.errors import (
    CorruptMetadata,
    FileMissing,
    FilesBeingDeleted,
    IcetowerError,
    IdempotencyKeyTaken,
    InvalidRequest,
    ManifestsReplaced,
    MetadataFileMissing,
    PointerMoved,
    Unavailable,
)
from app.recoveries import OrphansWait

log = logging.getLogger(__name__)

REPLAYED = (b"idempotent-replayed", b"true")
"""Marks an answer as a repetition, for those who debug a client."""

_NOT_FINAL = frozenset({401, 403, 408, 413, 419, 429})
"""Refusals that are not stored: the same request may succeed when it is sent again."""
_PASSING = (
    CorruptMetadata,
    FileMissing,
    FilesBeingDeleted,
    ManifestsReplaced,
    MetadataFileMissing,
    OrphansWait,
    PointerMoved,
)
"""Refusals, or their causes, that pass by themselves: a deletion or a race ends, a file is put back.

To a commit they are final. Its client deletes the files that it has written for it, and the same commit must not land
when it comes late.
"""


def run_once(
    visit: Visit,
    mutate: Callable[[Catalog], Response],
    replay: Callable[[str], Response],
    *,
    is_commit: bool = False,
) -> Response:
    """Run a mutation, or answer like the first request under its Idempotency-Key did.

    The claim is stored in the transaction that makes the change. A final refusal is stored before it is
    answered.

    Args:
        visit: the request.
        mutate: makes the change in the catalog of the request's warehouse and caller.
        replay: answers again from what the success stored.
        is_commit: whether the client has written files for it, which it deletes after a refusal.

    Raises:
        InvalidRequest: the key is not 1 to 255 printable characters.
        IdempotencyKeyReused: the key belongs to another request.
    """
    once = Once(visit, replay, is_commit=is_commit)
    earlier = once.earlier()
    if earlier is not None:
        return earlier
    try:
        return mutate(once.catalog())
    except IcetowerError as error:
        return once.refused(error)


class Once:
    """One mutation under its Idempotency-Key, if it has one, carried out in several steps."""

    def __init__(self, visit: Visit, replay: Callable[[str], Response], *, is_commit: bool = False) -> None:
        """Read the key; raises `InvalidRequest`. The arguments are those of `run_once`."""
        self._visit = visit
        self._replay = replay
        self._is_commit = is_commit
        self._claim = claim_of(visit)

    def earlier(self) -> Response | None:
        """Return the answer of the first request under this key; None if there is none."""
        return None if self._claim is None else _replayed(self._visit, self._claim, self._replay)

    def catalog(self) -> Catalog:
        """Return the catalog in which the mutation is made."""
        return self._visit.catalog_of(self._visit.warehouse, self._claim)

    def refused(self, error: IcetowerError) -> Response:
        """Remember a final refusal and raise it, or answer like an equal request that was faster."""
        visit, claim = self._visit, self._claim
        if claim is None:
            raise error
        if isinstance(error, IdempotencyKeyTaken):
            return _winner(visit, claim, self._replay, error)
        status, _ = status_and_type(error)
        if not 400 <= status < 500 or status in _NOT_FINAL:
            raise error
        if self._may_pass(error):
            # As below, an equal request may have been faster, and be what this one met.
            if (earlier := self.earlier()) is not None:
                return earlier
            raise error
        body = body_of(error, visit.request_id, visit.prefix)
        try:
            record_refusal(visit.parts.server, claim, status, body)
        except IdempotencyKeyTaken as taken:
            # An equal request was faster, and what it did may be why this one was refused.
            return _winner(visit, claim, self._replay, taken)
        except IcetowerError as failure:
            # The request is refused, remembered or not: nothing was changed.
            log.warning("could not remember a refusal under its Idempotency-Key: %s", failure)
        raise error

    def _may_pass(self, error: IcetowerError) -> bool:
        return not self._is_commit and any(isinstance(each, _PASSING) for each in (error, error.__cause__))


def done_once(visit: Visit, mutate: Callable[[Catalog], object], *, is_commit: bool = False) -> Response:
    """Run a mutation whose answer is empty; raises like `run_once`."""

    def run(catalog: Catalog) -> Response:
        mutate(catalog)
        return no_content()

    return run_once(visit, run, lambda _result: no_content(), is_commit=is_commit)


def claim_of(visit: Visit) -> IdempotencyClaim | None:
    """Return the claim of a request with an Idempotency-Key; raises `InvalidRequest`."""
    header = visit.header(b"idempotency-key")
    if header is None:
        return None
    key = header.decode("latin-1")
    if not KEY.fullmatch(key):
        raise InvalidRequest("Invalid Idempotency-Key: it must be 1 to 255 printable ASCII characters")
    now_ms = visit.parts.server.now_ms()
    digest = sha256()
    for part in (visit.method.encode(), visit.raw_target, visit.body):
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return IdempotencyClaim(
        principal=visit.principal,
        key=key,
        request_hash=digest.hexdigest(),
        now_ms=now_ms,
        expires_ms=now_ms + visit.parts.key_lifetime_minutes * 60_000,
        commit_id=visit.commit_id,
    )


def _replayed(visit: Visit, claim: IdempotencyClaim, replay: Callable[[str], Response]) -> Response | None:
    """Return the answer of the request that finished under this key; None if there is none."""
    outcome = find_outcome(visit.parts.server, claim)
    if outcome is None:
        return None
    telemetry.REPLAYS.inc()
    if outcome.commit_id:
        # What became of this request is what became of the first one.
        visit.commit_id = outcome.commit_id
    if outcome.status >= 400:
        return json_answer(outcome.result.encode(), outcome.status, REPLAYED)
    response = replay(outcome.result)
    response.raw_headers.append(REPLAYED)
    return response


def _winner(
    visit: Visit, claim: IdempotencyClaim, replay: Callable[[str], Response], taken: IdempotencyKeyTaken
) -> Response:
    """Answer like the equal request that finished while this one ran."""
    answer = _replayed(visit, claim, replay)
    if answer is None:
        # The key expired between the two lookups: sent again, this request will be the first.
        raise Unavailable("An equal request finished just now; send this one again") from taken
    return answer
