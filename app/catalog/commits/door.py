"""The one door through which a pointer is made or moved. A commit reads here from top to bottom."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence

from app import telemetry
from app.catalog.commits.guard import CommitGuard
from app.catalog.commits.intentions import D, Intention, Landed
from app.catalog.commits.old_metadata import forget_old_metadata
from app.catalog.commits.plans import Plan, Staged, by_name, plan_group
from app.catalog.commits.races import outrun
from app.catalog.commits.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.database.pointers.history import Author
from app.database.pointers.moves import NameTaken, Unmoved
from app.database.pointers.pointers import PutOutcome
from app.errors import CommitFailed, CommitStateUnknown, IcetowerError

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.5


def land_one(catalog: Catalog, intention: Intention[M, D]) -> Landed[M, D]:
    """Carry out one intention; see `land`."""
    return land(catalog, [intention])[0]


def land(catalog: Catalog, intentions: Sequence[Intention[M, D]]) -> list[Landed[M, D]]:
    """Carry out intentions in one transaction, and return each one's result, name by name.

    Intentions of one name are applied in order and written as one metadata file. All are planned anew each time
    another commit wins. No database connection is held while files are read or written.

    Raises:
        NotFound, AlreadyExists, CommitFailed, BadRequest: an intention is refused, or the guard rejects it.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new files stay.
        Unavailable: the database or the store does not answer; nothing was changed.
    """
    kind, guard, groups = str(intentions[0].kind), CommitGuard(catalog), by_name(intentions)
    first, plans = list[Plan[M, D]](), list[Plan[M, D]]()
    attempts = max(1, catalog.rules.commit_attempts)
    for attempt in range(attempts):
        if attempt:
            telemetry.COMMIT_RETRIES.inc()
            longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
            catalog.server.pause(random.uniform(0.2, 1.0) * longest_s)  # noqa: S311 - back-off, not a secret
        files, author = StagedFiles(catalog), catalog.author()
        try:
            plans = [plan_group(catalog, group, files) for group in groups]  # find, read, require, apply
            for each in plans:
                guard.check(each)
            staged = [each.stage(catalog, files) for each in plans]
            outcome = _put(catalog, staged, author)
        except IcetowerError as error:
            # Raised only when the transaction certainly did not happen.
            files.discard()
            if isinstance(error, CommitFailed):
                telemetry.COMMITS.labels(kind=kind, outcome="conflict").inc()
            raise
        if outcome is PutOutcome.UNKNOWN:
            _confirm(catalog, staged, author)
        if outcome is not PutOutcome.MOVED:
            return [result for each in staged for result in _landed(catalog, each)]
        files.discard()
        first = first or plans
    telemetry.COMMITS.labels(kind=kind, outcome="conflict").inc()
    raise outrun([each.base for each in first], [each.base for each in plans], attempts)


def _put(catalog: Catalog, staged: Sequence[Staged[M, D]], author: Author) -> PutOutcome:
    moves = [each.move for each in staged if each.move is not None]
    remembered = staged[0].remembered(changed=bool(moves))
    if not moves:
        catalog.remember(200, remembered)
        return PutOutcome.ADVANCED
    unmoved = [Unmoved(each.plan.base.seen) for each in staged if each.move is None and each.plan.base.seen]
    catalog.server.step("before_put")
    try:
        claim = catalog.caller.claim_of(remembered)
        outcome = catalog.server.pointers.check_and_put([*moves, *unmoved], author, claim)
    except NameTaken:
        return PutOutcome.MOVED
    catalog.server.step("after_put")
    return outcome


def _confirm(catalog: Catalog, staged: Sequence[Staged[M, D]], author: Author) -> None:
    """Find out whether a transaction landed whose reply was lost; return if it did.

    Raises:
        CommitStateUnknown: it did not, or that cannot be found out; nothing is deleted.
    """
    # All pointers moved in one transaction, so the first one speaks for all.
    move, base = next((each.move, each.plan.base) for each in staged if each.move is not None)
    try:
        if catalog.server.pointers.has_landed(move, author):
            return
    except IcetowerError as error:
        log.warning("could not confirm a commit of %s: %s", base.identifier, error)
    telemetry.COMMITS.labels(kind=str(base.kind), outcome="unknown").inc()
    raise CommitStateUnknown(
        f"Cannot tell whether the commit to {base.identifier} landed: the database did not answer. "
        "Nothing was deleted; reload it and see"
    )


def _landed(catalog: Catalog, staged: Staged[M, D]) -> list[Landed[M, D]]:
    """Answer for a pointer that has moved: from here on nothing may fail the request."""
    loaded, base = staged.loaded, staged.plan.base
    if staged.move is not None:
        catalog.keep(staged.move.location, loaded)
        telemetry.COMMITS.labels(kind=str(base.kind), outcome="landed").inc()
        forget_old_metadata(catalog, base, loaded.metadata)
    return staged.results()
