"""The one door through which a pointer is made or moved. A commit reads here from top to bottom."""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

from app import telemetry
from app.catalog.commits.files.staged_files import StagedFiles, begin_to_settle
from app.catalog.commits.intentions import D
from app.catalog.commits.joined_wishes import plan_all
from app.catalog.commits.old_metadata import forget_old_metadata
from app.catalog.commits.plans import Names, Staged
from app.catalog.commits.races import attempt_in_turn
from app.catalog.commits.wishes import Wish, discard, fail_all, give_up, leave_unknown, lose_race
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.database.pointers.moves import Advance, NameTaken, Unmoved
from app.database.pointers.pointers import PutOutcome
from app.errors import IcetowerError

log = logging.getLogger(__name__)


def land_all(wishes: Sequence[Wish[M, D]], lines: Collection[Hashable] = ()) -> None:
    """Carry out what several requests want of one name, or one request of several names.

    All of it lands in one transaction. Intentions of one name are applied in order and written as one metadata file.
    All are planned anew each time another commit wins. A wish that is refused fails alone: every wish gets its
    results, or its error. No database connection is held while files are read or written.
    """
    catalog = wishes[0].catalog
    attempts = max(1, catalog.rules.commit_attempts)
    names = frozenset[str]().union(*(wish.names for wish in wishes))
    lost = attempt_in_turn(catalog.server, names, attempts, lambda: _attempt(catalog, wishes), lines)
    give_up(wishes, lost, attempts)


def _attempt(catalog: Catalog, wishes: Sequence[Wish[M, D]]) -> Sequence[Wish[M, D]]:
    """Try once; return the wishes that lost a race, while all others have their outcome."""
    names, files = Names[M, D](), StagedFiles(catalog)
    # Find, read, require, apply, look with the guard.
    standing = plan_all(wishes, names)
    if not standing:
        return ()
    try:
        begin_to_settle(catalog.server.side_work, [wish.files for wish in standing])
        staged = [plan.stage(catalog, files) for plan in names.plans]
        for wish in standing:
            wish.settle()
        outcome = _put(catalog, standing, staged)
    except IcetowerError as error:
        discard(files, standing)  # Raised only when the transaction certainly did not happen.
        for wish in fail_all(wishes, standing, error):
            land_all([wish])
        return ()
    if outcome is PutOutcome.UNKNOWN and not _has_landed(catalog, standing, staged):
        leave_unknown(wishes, standing)
        return ()
    if outcome is not PutOutcome.MOVED:
        _answer(catalog, standing, staged)
        return ()
    lose_race(files, standing)
    return standing


def _put(catalog: Catalog, wishes: Sequence[Wish[M, D]], staged: Sequence[Staged[M, D]]) -> PutOutcome:
    moves = [each.move for each in staged if each.move is not None]
    unmoved = [Unmoved(each.plan.base.seen) for each in staged if each.move is None and each.plan.base.seen]
    first, *others = [wish for wish in wishes if wish.changes] or wishes
    receipts = [receipt for wish in wishes if (receipt := wish.receipt(staged, 1 + len(others)))]
    if not moves:
        for wish in wishes:
            wish.catalog.remember(200, wish.remembered(staged[0]))
        catalog.server.receipts.note(*receipts)
        return PutOutcome.ADVANCED
    if isinstance(moves[0], Advance):
        moves[0] = replace(moves[0], others=tuple(wish.event for wish in others))
    catalog.server.step("before_put")
    try:
        claims = [wish.claim(staged[0]) for wish in wishes]
        outcome = catalog.pointers.check_and_put([*moves, *unmoved], first.author, *claims, receipts=receipts)
    except NameTaken:
        return PutOutcome.MOVED
    catalog.server.step("after_put")
    return outcome


def _has_landed(catalog: Catalog, wishes: Sequence[Wish[M, D]], staged: Sequence[Staged[M, D]]) -> bool:
    """Say whether a transaction surely landed whose reply was lost."""
    # All pointers moved in one transaction, so the first one speaks for all.
    move, base = next((each.move, each.plan.base) for each in staged if each.move is not None)
    author = next(wish.author for wish in wishes if wish.changes)
    try:
        return catalog.pointers.has_landed(move, author)
    except IcetowerError as error:
        log.warning("could not confirm a commit of %s: %s", base.identifier, error)
        return False


def _answer(catalog: Catalog, wishes: Sequence[Wish[M, D]], staged: Sequence[Staged[M, D]]) -> None:
    """Answer for pointers that have moved: nothing may fail the requests any more."""
    together, began_ms = sum(wish.changes for wish in wishes), min(wish.author.at_ms for wish in wishes)
    for each in staged:
        if each.move is not None:
            telemetry.COMMITS_TOGETHER.observe(together)
            uuid, identifier = each.move.uuid, each.plan.base.identifier
            catalog.count(each.plan.base.kind, identifier, uuid, moves=1, together=together)
            catalog.keep(each.move.location, each.loaded)
            catalog.note_landed(identifier, uuid, each.move.location, began_ms)
            forget_old_metadata(catalog, each.plan.base, each.loaded.metadata)
    results = {each.plan.base.identifier: iter(each.results()) for each in staged}
    for wish in wishes:
        wish.land(results)
