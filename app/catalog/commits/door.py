"""The one door through which a pointer is made or moved. A commit reads here from top to bottom."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence

from app import telemetry
from app.catalog.commits.guard import CommitGuard
from app.catalog.commits.intentions import D, Intention, Landed
from app.catalog.commits.old_metadata import forget_old_metadata
from app.catalog.commits.plans import Plan, plan
from app.catalog.commits.races import outrun
from app.catalog.commits.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Loaded, M
from app.database.pointers import NameTaken, PutOutcome, Unmoved
from app.engine.model.identifiers import TableIdentifier
from app.errors import CommitFailed, CommitStateUnknown, IcetowerError

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.5


def land_one(catalog: Catalog, intention: Intention[M, D]) -> Landed[M, D]:
    """Carry out one intention; see `land`."""
    return land(catalog, [intention])[0]


def land(catalog: Catalog, intentions: Sequence[Intention[M, D]]) -> list[Landed[M, D]]:
    """Carry out intentions in one transaction, all or none; return each one's result, name by name.

    Intentions of one name are applied in order and written as one metadata file. All are planned anew each time
    another commit wins. No database connection is held while files are read or written.

    Raises:
        NotFound, AlreadyExists, CommitFailed, BadRequest: an intention is refused, or the guard rejects it.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new files stay.
        Unavailable: the database or the store does not answer; nothing was changed.
    """
    by_name: dict[TableIdentifier, list[Intention[M, D]]] = {}
    for intention in intentions:
        by_name.setdefault(intention.identifier, []).append(intention)
    guard = CommitGuard(catalog)
    first: list[Plan[M, D]] = []
    plans: list[Plan[M, D]] = []
    attempts = max(1, catalog.rules.commit_attempts)
    for attempt in range(attempts):
        if attempt:
            telemetry.COMMIT_RETRIES.inc()
            longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
            catalog.server.pause(random.uniform(0.2, 1.0) * longest_s)  # noqa: S311 - back-off, not a secret
        files = StagedFiles(catalog)
        try:
            plans = [plan(catalog, group, files) for group in by_name.values()]  # find, read, require, apply
            for each in plans:
                guard.check(each)
            staged = [(each, each.stage(catalog, files)) for each in plans]
            outcome = _put(catalog, staged)
        except IcetowerError as error:
            # Raised only when the transaction certainly did not happen.
            files.discard()
            if isinstance(error, CommitFailed):
                _count(intentions[0], "conflict")
            raise
        if outcome is PutOutcome.UNKNOWN:
            _confirm(catalog, staged)
        if outcome is not PutOutcome.MOVED:
            return [landed for each, loaded in staged for landed in _landed(catalog, each, loaded)]
        files.discard()
        first = first or plans
    _count(intentions[0], "conflict")
    raise outrun([each.base for each in first], [each.base for each in plans], attempts)


def _put(catalog: Catalog, staged: Sequence[tuple[Plan[M, D], Loaded[M] | None]]) -> PutOutcome:
    moves = [each.move_to(catalog, loaded) for each, loaded in staged if loaded is not None]
    if not moves:
        first = staged[0][0]
        location = first.as_it_was().location
        assert location is not None
        catalog.remember(200, first.intentions[0].remembered_as(location, changed=False))
        return PutOutcome.ADVANCED
    unmoved = [Unmoved(each.base.seen) for each, loaded in staged if loaded is None and each.base.seen]
    claim = catalog.caller.claim_of(staged[0][0].intentions[0].remembered_as(moves[0].location, changed=True))
    catalog.server.step("before_put")
    try:
        outcome = catalog.server.pointers.check_and_put([*moves, *unmoved], catalog.author(), claim)
    except NameTaken:
        return PutOutcome.MOVED
    catalog.server.step("after_put")
    return outcome


def _confirm(catalog: Catalog, staged: Sequence[tuple[Plan[M, D], Loaded[M] | None]]) -> None:
    """Find out whether a transaction landed whose reply was lost; return if it did.

    Raises:
        CommitStateUnknown: it did not, or that cannot be found out; nothing is deleted.
    """
    # All pointers moved in one transaction, so the first one speaks for all.
    plan_, loaded = next((each, loaded) for each, loaded in staged if loaded is not None)
    try:
        if catalog.server.pointers.has_landed(plan_.move_to(catalog, loaded)):
            return
    except IcetowerError as error:
        log.warning("could not confirm a commit of %s: %s", plan_.base.identifier, error)
    _count(plan_.intentions[0], "unknown")
    raise CommitStateUnknown(
        f"Cannot tell whether the commit to {plan_.base.identifier} landed: the database did not answer. "
        "Nothing was deleted; reload it and see"
    )


def _landed(catalog: Catalog, plan_: Plan[M, D], loaded: Loaded[M] | None) -> list[Landed[M, D]]:
    """Answer for a pointer that has moved: from here on nothing may fail the request."""
    if loaded is None:
        return plan_.landed(plan_.as_it_was())
    assert loaded.location is not None
    catalog.server.metadata_files.keep(loaded.location, loaded.metadata, loaded.json)
    _count(plan_.intentions[0], "landed")
    forget_old_metadata(catalog, plan_.base, loaded.metadata)
    return plan_.landed(loaded)


def _count(intention: Intention[M, D], outcome: str) -> None:
    telemetry.COMMITS.labels(kind=str(intention.kind), outcome=outcome).inc()
