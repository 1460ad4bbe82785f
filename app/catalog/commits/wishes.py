"""Wishes: what single requests want while the door carries them out, and what came of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import replace
from typing import Final, Generic

from app import telemetry
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.guard import CommitGuard
from app.catalog.commits.intentions import Base, D, Intention, Joined, Landed
from app.catalog.commits.plans import Names, Plan, Staged, refusals_explained
from app.catalog.commits.races import outrun
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.catalog.context.places.locations import check_locations
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.context.rows import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt, Outcome, landed
from app.database.outcomes.receipts import GivenUpMeanwhile
from app.database.pointers.history import Author
from app.engine.model.identifiers import TableIdentifier
from app.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    CommitStateUnknown,
    FilesBeingDeleted,
    IcetowerError,
    IdempotencyKeyTaken,
    NotFound,
    PointerMoved,
    Unavailable,
)
from app.waits import has_companions, wait_until_over

ONE_IS_TO_BLAME: Final = BadRequest | FilesBeingDeleted | IdempotencyKeyTaken | GivenUpMeanwhile
"""What one of several wishes is refused for, as for metadata that is too large to be stored: others land without it."""


class Wish(Generic[M, D]):
    """The intentions of one request: all of them land, or none."""

    def __init__(self, catalog: Catalog, intentions: Sequence[Intention[M, D]]) -> None:
        self.catalog = catalog
        self.intentions = intentions
        self.kind = str(intentions[0].kind)
        self.plans: list[Plan[M, D]] = []
        self.author: Author = catalog.author()
        self._first: list[Plan[M, D]] = []
        self._context = copy_context()
        self._files = StagedFiles(catalog)
        self._guard = CommitGuard(catalog)
        self._landed: list[Landed[M, D]] | None = None
        self._read_ahead: Future[None] | None = None
        self._error: BaseException | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names that it is about, as all processes on the database call them."""
        warehouse_id = self.catalog.warehouse.id
        return frozenset(f"{warehouse_id} {each.identifier}" for each in self.intentions)

    def plan(self, names: Names[M, D]) -> bool:
        """Plan all of it on what is planned already; False if it is refused.

        What it was refused for may be a wish before it that then loses its race: it is planned anew with that one.
        """
        if self._read_ahead is not None:
            wait_until_over(self._read_ahead)
        # In the context of its own request: another one's client may have gone meanwhile.
        return self._context.run(self._plan, names)

    def read_ahead(self) -> None:
        """Read what it will need, or begin to, while others for its name are at work."""
        if has_companions():
            self._prepare()  # Its files are on this machine: to wake a thread takes longer than to read them.
        else:
            self.read_elsewhere()

    def read_elsewhere(self) -> None:
        """Begin to read what it will need, if a thread is free and that has not begun."""
        if self._read_ahead is None:
            self._read_ahead = self.catalog.server.read_ahead.start_if_free(self._prepare)

    def _prepare(self) -> None:
        self.intentions[0].prepare(self.catalog)

    def _plan(self, names: Names[M, D]) -> bool:
        self._error, self.author = None, self.catalog.author()
        try:
            plans = names.plan(self.catalog, self.intentions, self._files)
            plans = [replace(plan, foreign=self._guard.check(plan)) for plan in plans]
        except Exception as error:  # noqa: BLE001 - raised again by `results`
            self.discard()
            self._error = error
            return False
        for plan in plans:
            names.keep(plan)
        self.plans = plans
        self._first = self._first or plans
        return True

    @property
    def is_refused(self) -> bool:
        """Whether it may not be done to what it was planned on."""
        return isinstance(self._error, AlreadyExists | BadRequest | CommitFailed | NotFound)

    def can_land_alone(self) -> bool | None:
        """Plan it on what is stored, and say whether it is not refused there; nothing of it stays.

        None if what is stored cannot be read.
        """
        can_land = self.plan(Names())
        self.discard()
        return None if isinstance(self._error, Unavailable) else can_land

    def join(self, joined: Joined[M, D], base: Base[M]) -> bool:
        """Become a part of a change with others; False if it is refused."""
        return self._context.run(self._join, joined, base)

    def _join(self, joined: Joined[M, D], base: Base[M]) -> bool:
        self._error, self.author = None, self.catalog.author()
        intention = self.intentions[0]
        try:
            with refusals_explained(self.catalog, base, intention):
                intention.require(base)
                joined.add(intention)
        except Exception as error:  # noqa: BLE001 - raised again by `results`
            self._error = error
            return False
        return True

    def finish_joined(
        self, others: Sequence[Wish[M, D]], joined: Joined[M, D], base: Base[M], names: Names[M, D]
    ) -> None:
        """Plan the change that this wish and others became: its files are this one's to discard.

        Raises:
            CommitFailed, BadRequest, Unavailable: it is refused as a whole; nothing of it stays.
        """
        wishes = [self, *others]
        names.note_files(self._files)
        try:
            planned = joined.apply(self._files)
            plans = [Plan(base, wish.intentions, [item]) for wish, item in zip(wishes, planned, strict=True)]
            assert planned[0].metadata is not None
            check_locations(self.catalog, base.identifier, planned[0].metadata, base.metadata)
            foreign = self._guard.check(Plan(base, [wish.intentions[0] for wish in wishes], planned))
            plans[0] = replace(plans[0], foreign=foreign)
        except BaseException:
            self.discard()
            raise
        for wish, plan in zip(wishes, plans, strict=True):
            names.keep(plan)
            wish.plans = [plan]
            wish._first = wish._first or [plan]  # noqa: SLF001 - of the same class

    @property
    def event(self) -> tuple[str, Author]:
        """What pointer history remembers of it."""
        return self.plans[0].event, self.author

    @property
    def changes(self) -> bool:
        """Whether it changes anything."""
        return any(plan.changes for plan in self.plans)

    def remembered(self, staged: Staged[M, D]) -> str:
        """Return what is left for a repeated request under an Idempotency-Key."""
        assert staged.loaded.location is not None
        first = self.plans[0].planned[0]
        at = RecordedPlace(staged.loaded.location, staged.loaded.metadata.uuid)
        return self.intentions[0].remembered_as(
            at, changed=self.changes, detail=None if first is None else first.detail
        )

    def claim(self, staged: Staged[M, D]) -> IdempotencyClaim | None:
        """Return the claim to the request's Idempotency-Key, if it has one."""
        return self.catalog.caller.claim_of(self.remembered(staged))

    def receipt(self, staged: Sequence[Staged[M, D]], together: int) -> CommitReceipt | None:
        """Return what its receipt will be if all that is staged lands; None if it is to have none."""
        head = self.author.head
        if head is None:
            return None
        changes = []
        for plan in self.plans:
            if plan.changes:
                whole = next(each for each in staged if each.plan.base.identifier == plan.base.identifier)
                seen = whole.plan.base.seen
                before = seen.metadata_location if seen is not None else None
                changes.append(
                    replace(plan.change, location_before=before, location_after=whole.loaded.location)
                )
        if not changes:
            return CommitReceipt(head, Outcome.UNCHANGED, self.author.at_ms)
        return landed(head, self.author.at_ms, changes, together)

    @property
    def files(self) -> StagedFiles:
        """Its manifests and manifest lists."""
        return self._files

    def settle(self) -> None:
        """Wait until its manifests and manifest lists are durable.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        self._files.settle()

    def discard(self) -> None:
        """Delete the manifests that it has written: nothing can name them."""
        self._files.discard()

    def land(self, results: Mapping[TableIdentifier, Iterator[Landed[M, D]]]) -> None:
        """Take the results of its intentions, which come in the order in which they were planned."""
        self._landed = [next(results[plan.base.identifier]) for plan in self.plans for _ in plan.intentions]

    def fail(self, error: BaseException) -> None:
        """End it with an error, which others may end with too: its frames are theirs."""
        self._error = error.with_traceback(None)

    def leave_unknown(self) -> None:
        """End it because it may have landed or not; its files stay."""
        why = "the database did not answer" if self.catalog.has_rows else "its folder does not say"
        self.fail(
            CommitStateUnknown(
                f"Cannot tell whether the commit to {self.intentions[0].identifier} landed: {why}. "
                "Nothing was deleted; reload it and see"
            )
        )

    def give_up(self, attempts: int) -> None:
        """End it because it lost every race."""
        self.fail(outrun([plan.base for plan in self._first], [plan.base for plan in self.plans], attempts))

    def results(self) -> list[Landed[M, D]]:
        """Return what came of each intention, name by name, or raise why it failed."""
        error = self._error
        if isinstance(error, CommitFailed | CommitStateUnknown):
            outcome = "conflict" if isinstance(error, CommitFailed) else "unknown"
            telemetry.COMMITS.labels(kind=self.kind, outcome=outcome).inc()
            self.count(**{"refused" if outcome == "conflict" else "unknown": 1})
        if isinstance(error, CommitFailed) and error.not_rebased is not None:
            telemetry.REBASES.labels(outcome="refused", reason=error.not_rebased.reason).inc()
        if error is not None:
            raise error
        telemetry.COMMITS.labels(kind=self.kind, outcome="landed").inc(
            sum(plan.changes for plan in self.plans)
        )
        for plan in self.plans:
            if plan.changes:
                base = plan.base
                self.catalog.count(base.kind, base.identifier, landed=1, rebased=int(plan.rebased))
        assert self._landed is not None
        rebased_count = sum(landed.rebased for landed in self._landed)
        if rebased_count:
            telemetry.REBASES.labels(outcome="landed", reason="").inc(rebased_count)
        return self._landed

    def count(self, **numbers: int) -> None:
        """Count what has become of it for each of its tables."""
        for identifier in {intention.identifier for intention in self.intentions}:
            self.catalog.count(self.intentions[0].kind, identifier, **numbers)


def discard(files: StagedFiles, wishes: Sequence[Wish[M, D]]) -> None:
    """Delete all that an attempt has written for some wishes."""
    files.discard()
    for wish in wishes:
        wish.discard()


def fail_all(
    wishes: Sequence[Wish[M, D]], standing: Sequence[Wish[M, D]], error: IcetowerError
) -> Sequence[Wish[M, D]]:
    """End wishes that stand, and those refused for them alone; return whom to try alone.

    That are all of them, where one of several is to blame for the error.
    """
    if isinstance(error, ONE_IS_TO_BLAME) and len(wishes) > 1:
        return wishes
    for wish in [*standing, *_refused_in_vain(wishes, standing)]:
        wish.fail(error)
    return ()


def leave_unknown(wishes: Sequence[Wish[M, D]], standing: Sequence[Wish[M, D]]) -> None:
    """End wishes that stand because they may have landed or not; their files stay."""
    for wish in standing:
        wish.leave_unknown()
    for wish in _refused_in_vain(wishes, standing):
        wish.fail(Unavailable("What became of the commits before this one is not known; it changed nothing"))


def give_up(wishes: Sequence[Wish[M, D]], lost: Sequence[Wish[M, D]], attempts: int) -> None:
    """End wishes that lost every race, and those that were refused for them alone."""
    for wish in lost:
        wish.give_up(attempts)
    for wish in _refused_in_vain(wishes, lost):
        wish.fail(PointerMoved(wish.intentions[0].identifier, attempts))


def _refused_in_vain(wishes: Sequence[Wish[M, D]], standing: Sequence[Wish[M, D]]) -> list[Wish[M, D]]:
    """Return those that were refused for what others before them wanted.

    As those have not landed, they are planned once more, on what is stored.
    """
    behind = wishes[wishes.index(standing[0]) + 1 :] if standing else ()
    refused = [wish for wish in behind if wish.is_refused and wish not in standing]
    in_vain: list[Wish[M, D]] = []
    for number, wish in enumerate(refused):
        can_land = wish.can_land_alone()
        if can_land is None:
            return in_vain + refused[number:]  # The others would wait for the same store as long again.
        if can_land:
            in_vain.append(wish)
    return in_vain


def lose_race(files: StagedFiles, wishes: Sequence[Wish[M, D]]) -> None:
    """Delete what an attempt has written that another process was faster than, and count it."""
    discard(files, wishes)
    telemetry.RACES_LOST.inc()
    for wish in wishes:
        wish.count(races_lost=1)
