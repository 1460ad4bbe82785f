"""The queue of one table: who has lost a race, and which slot each gets. Pure: times are given."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from app.catalog.context.seen.traffic import QueueState
from app.catalog.slots.rushes import FEWEST_WRITERS, Rush, SlotCounts

PROTECTED_LOSSES: Final = 2
"""After so many lost races a writer's slots are its own; sooner if its retries are fewer."""
CLOSER, WIDER = 0.95, 1.08
"""How the spacing of slots that are not protected shrinks when a writer lands, and grows when one loses again."""
SAFETY, LAST_SAFETY = 1.2, 2.0
"""A slot is so many times as long as its writer took the last time, if that is longer; the second for a last retry."""
SLOW: Final = 0.65
"""Where a window is longer than this share of a first back-off, all slots are their writers' own."""
MARGIN_MS, LONGEST_MARGIN_MS = 20, 250
"""How long a server may take to land a commit that has come."""
MARGIN: Final = 1.5
"""Where files are far away that is at most so many times what a writer takes to make one."""
JITTER: Final = 0.1
"""Clients add up to this share to their back-off."""
LONGER, SHORTER = 1.1, 0.975
"""How a window grows when a writer comes later than it, and shrinks when one comes earlier: four of five fit in."""
PATIENCE: Final = 1.0
"""How many landings for each writer in the queue one may wait before newcomers have to wait too."""
RECENT: Final = 0.2
"""How much the last writer's loss says about the time between two landings."""
FIRST_WINDOW_MS: Final = 60.0
SHORTEST_WINDOW_MS: Final = 3.0
LONGEST_WINDOW_MS: Final = 15_000.0
OFTEN: Final = 2
"""A writer that has lost so often is counted when it lands."""
MOST_SLOTS: Final = 512
"""More writers are answered at once; a row with all of them would be too long to change at each loss."""
MOST_FIRST_LOSSES, MOST_SHARING = 128, 64
HANDOVER_MS: Final = 50
"""How long a server leaves a lease that another one waits for before it takes it again."""
KEPT_MS: Final = 60_000
"""How long a writer that has not come back is remembered after its slot."""


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How a client tries again after a 409: the table's `commit.retry.*` properties."""

    count: int = 4
    min_wait_ms: int = 100
    max_wait_ms: int = 60_000

    def back_off_ms(self, losses: int) -> int:
        """Return how long the client waits at least after so many losses: it doubles each time."""
        return min(self.min_wait_ms << min(losses - 1, 20), self.max_wait_ms)

    @property
    def protected_losses(self) -> int:
        """From how many losses on the writer's slots are its own."""
        return min(PROTECTED_LOSSES, max(1, self.count - 2))


@dataclass(frozen=True, slots=True)
class Before:
    """What is known of a writer that comes into a queue."""

    took_ms: float = 0.0
    """How long writers like it take from their load to their commit; 0 if that is not known."""
    waits_with_load: bool = False
    """Whether its next load can wait, so that it needs no slot."""
    sharing: str = ""
    """Its address, if writers there share connections; see `Beginnings`."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One writer's place in the queue, and its slot once it was released."""

    writer: str
    losses: int
    retries: RetryRules
    first_ms: int
    """When it lost for the first time."""
    asked_ms: int
    """When it lost: since then its 409 is held back."""
    opens_ms: int | None = None
    """Once released: before this time it cannot have loaded the table again."""
    closes_ms: int = 0
    took_ms: float = 0.0
    """How long it took the last time from the slot's opening to its commit."""
    has_passed: bool = False
    """Whether it is counted that the writer has not come in its slot."""

    @property
    def is_released(self) -> bool:
        return self.opens_ms is not None

    @property
    def landing_ms(self) -> int:
        """How long a commit to this table may take to land."""
        return max(MARGIN_MS, min(LONGEST_MARGIN_MS, round(MARGIN * self.took_ms)))

    @property
    def shut_ms(self) -> int:
        """From when on nothing else may begin to land: it would after the slot opens."""
        assert self.opens_ms is not None
        return self.opens_ms - self.landing_ms

    @property
    def back_off_ms(self) -> int:
        return self.retries.back_off_ms(self.losses)

    def is_over_at(self, now_ms: int) -> bool:
        """Return whether it was released and has not come back in its slot."""
        return self.is_released and self.closes_ms <= now_ms

    def holds_loads_at(self, now_ms: int) -> bool:
        """Return whether no other writer may load the table: this one's commit may be landing.

        As `is_closed_at`, for slots that are protected.
        """
        return self.is_released and self.shut_ms <= now_ms < self.closes_ms + self.landing_ms

    def is_closed_at(self, now_ms: int) -> bool:
        """Return whether no other writer may begin to land now."""
        return self.opens_ms is not None and self.shut_ms <= now_ms < self.closes_ms


@dataclass(frozen=True, slots=True)
class LoadLease:
    """Which server lets its writers load the table, one after the other."""

    holder: str
    until_ms: int
    is_wanted: bool = False
    """Whether another server waits for it."""
    is_owed: bool = False
    """Whether a writer waits there that has lost a race."""


@dataclass
class LandingQueue:
    """The writers of one table that have lost a race, in the order in which they lost it."""

    slots: dict[str, Slot] = field(default_factory=dict)
    window_ms: float = FIRST_WINDOW_MS
    """How long a writer takes, as learnt, from the end of its back-off to its commit."""
    spacing_ms: float = FIRST_WINDOW_MS
    """How long after each other slots open that are not protected: as learnt, so that most of them are used."""
    interval_ms: float = FIRST_WINDOW_MS
    """The time between two landings of any writers."""
    head: tuple[int, int] = (0, 0)
    """The table's last sequence number that was seen, and when."""
    rush: Rush | None = None
    """What has happened since writers came; None if there are none, or one alone."""
    lease: LoadLease | None = None
    """Of the server whose writers may load the table now; see `held_loads`."""
    first_losses: dict[str, int] = field(default_factory=dict)
    """When writers without a slot have lost a race: their next attempt may come to another server."""
    sharing: dict[str, int] = field(default_factory=dict)
    """Addresses whose writers share connections, and until when that is believed: what one server sees, all know."""
    counts: SlotCounts = field(default_factory=SlotCounts, compare=False)
    """What has happened since the queue was read; not stored with it."""

    def state_at(self, now_ms: int) -> QueueState:
        """Return what the queue is like; without what single processes hold back."""
        since = self._waiting_since(now_ms)
        return QueueState(
            queue_length=len(since),
            longest_wait_ms=now_ms - min(since, default=now_ms),
            window_ms=self.window_ms,
            spacing_ms=self.spacing_ms,
            interval_ms=self.interval_ms,
        )

    def is_reserved_at(self, now_ms: int) -> bool:
        """Return whether commits have to ask before they land."""
        return any(
            self._is_protected(slot) and not slot.is_over_at(now_ms) for slot in self.slots.values()
        ) or self._is_unfair(now_ms)

    def closed_until_ms(self, writer: str, now_ms: int) -> int | None:
        """Return until when others' slots keep a commit from landing; None if it may land now."""
        own = self.slots.get(writer)
        fewest_losses = 0
        if own is not None and own.is_released and self._is_protected(own):
            if not own.is_over_at(now_ms):
                return None
            # It has come late, into the slot of another one, which may have no retries left.
            fewest_losses = own.losses + 1
        ends = [
            slot.closes_ms
            for slot in self.slots.values()
            if slot.writer != writer
            and slot.losses >= fewest_losses
            and self._is_protected(slot)
            and slot.is_closed_at(now_ms)
        ]
        if own is None and self._is_unfair(now_ms):
            ends.append(now_ms + round(self.window_ms))
        return max(ends, default=None)

    def take_lease(
        self,
        holder: str,
        now_ms: int,
        length_ms: int,
        shortest_ms: float = 1.0,
        *,
        lengthens: bool = False,
        has_lost: bool = False,
    ) -> int:
        """Return for how many milliseconds writers of a server may load the table; 0 if not now.

        Args:
            holder: the server.
            now_ms: the time.
            length_ms: how long it wants to have the table.
            shortest_ms: less is of no use to it; then nothing changes.
            lengthens: whether it is its turn still, although another server may wait.
            has_lost: whether one of its writers waits that has lost a race: those come before all others.
        """
        shuts = [
            slot.shut_ms
            for slot in self.slots.values()
            if self._is_protected(slot) and slot.is_released and slot.shut_ms > now_ms
        ]
        until_ms = min([now_ms + length_ms, *shuts])
        is_held = any(
            self._is_protected(slot) and slot.holds_loads_at(now_ms) for slot in self.slots.values()
        )
        if is_held or until_ms - now_ms < shortest_ms or self.closed_until_ms("", now_ms) is not None:
            return 0
        lease = self.lease
        if lease is not None and lease.holder != holder and now_ms < lease.until_ms:
            self.lease = replace(lease, is_wanted=True, is_owed=lease.is_owed or has_lost)
            return 0
        is_own = lease is not None and lease.holder == holder
        if (
            lease is not None
            and is_own
            and lengthens
            and (has_lost or not lease.is_owed)
            and now_ms < lease.until_ms
        ):
            self.lease = replace(lease, until_ms=until_ms)
            return until_ms - now_ms
        if lease is not None and is_own and lease.is_wanted and now_ms < lease.until_ms + HANDOVER_MS:
            # Its next writer would not come to its end before the lease does: the other server's begin now.
            self.lease = replace(lease, until_ms=min(lease.until_ms, now_ms))
            return 0
        self.lease = LoadLease(holder, until_ms)
        return until_ms - now_ms

    def _is_protected(self, slot: Slot) -> bool:
        """Return whether a slot is its writer's alone.

        Where writers take about as long as their first back-off, or longer, a slot that others may use is missed more
        often than it is used.
        """
        return (
            slot.losses >= slot.retries.protected_losses or self.window_ms >= SLOW * slot.retries.min_wait_ms
        )

    def _is_unfair(self, now_ms: int) -> bool:
        """Return whether newcomers must wait, because a writer has waited for too long."""
        # Those who are released are on their way, and cannot come sooner than their back-off lets them.
        held = [slot.asked_ms for slot in self.slots.values() if not slot.is_released]
        return now_ms - min(held, default=now_ms) > PATIENCE * (len(held) + 2) * self.interval_ms

    def _waiting_since(self, now_ms: int) -> list[int]:
        # Those whose slots are over are not waited for.
        return [slot.first_ms for slot in self.slots.values() if not slot.is_over_at(now_ms)]

    def land(self, writer: str, now_ms: int) -> None:
        """Note that a writer has landed."""
        self._learn(writer, now_ms, has_landed=True)
        slot = self.slots.pop(writer, None)
        self.first_losses.pop(writer, None)
        if slot is None:
            return
        self._count_end(slot, now_ms, used=1)
        self.counts.landed_after_losses += slot.losses >= OFTEN
        if self.rush is not None:
            self.rush.longest_wait_ms = max(self.rush.longest_wait_ms, now_ms - slot.first_ms)

    def lose(
        self,
        writer: str,
        retries: RetryRules,
        sequence: int,
        now_ms: int,
        before: Before = Before(),
    ) -> bool:
        """Note that a writer has lost a race; False if it gets no slot.

        That is so if its retries are used up, or if too many others have one.

        Args:
            writer: who has lost.
            retries: how it tries again.
            sequence: the table's last sequence number: it shows how many have landed.
            now_ms: the time.
            before: what was known of it before it came into the queue.
        """
        self._learn(writer, now_ms, has_landed=False)
        self._count(sequence, now_ms)
        if before.sharing:
            self._note_sharing(before.sharing, now_ms)
        first_ms = self.first_losses.pop(writer, None)
        slot = self.slots.pop(writer, None)
        if before.waits_with_load and slot is None and first_ms is None:
            self._note_first_loss(writer, now_ms)
            return True
        if slot is None and len(self.slots) >= MOST_SLOTS:
            return False
        if slot is not None:
            self._count_end(slot, now_ms, lost=1)
        losses = 1 + (slot.losses if slot else first_ms is not None)
        if losses > retries.count:
            self.counts.gave_up += 1
            return False
        first_ms, took_ms = (slot.first_ms, slot.took_ms) if slot else (first_ms or now_ms, before.took_ms)
        self.slots[writer] = Slot(writer, losses, retries, first_ms, now_ms, took_ms=took_ms)
        return True

    def _note_first_loss(self, writer: str, now_ms: int) -> None:
        known = {known: at_ms for known, at_ms in self.first_losses.items() if at_ms > now_ms - KEPT_MS}
        if len(known) >= MOST_FIRST_LOSSES:
            del known[next(iter(known))]
        self.first_losses = known | {writer: now_ms}

    def sharing_at(self, now_ms: int) -> dict[str, int]:
        """Return the addresses whose writers share connections, and for how many ms still."""
        return {address: until_ms - now_ms for address, until_ms in self.sharing.items() if until_ms > now_ms}

    def _note_sharing(self, address: str, now_ms: int) -> None:
        known = {known: until_ms for known, until_ms in self.sharing.items() if until_ms > now_ms}
        if address in known or len(known) < MOST_SHARING:
            self.sharing = known | {address: now_ms + KEPT_MS}

    def leave(self, writers: Collection[str]) -> None:
        """Forget writers whose clients have gone."""
        for writer in writers:
            slot = self.slots.pop(writer, None)
            self.first_losses.pop(writer, None)
            if slot is not None:
                self.counts.slots_passed += slot.is_released and not slot.has_passed

    def settle(self, now_ms: int) -> Rush | None:
        """Add what has happened to the rush; return the rush that is over now, if there was one."""
        writers, ended = len(self._waiting_since(now_ms)), None
        if self.rush is not None and self.rush.is_over_at(now_ms):
            self.rush, ended = None, self.rush
        if self.rush is None and writers >= FEWEST_WRITERS:
            self.rush = Rush(now_ms)
        if self.rush is not None:
            self.rush.note(writers, self.counts, now_ms)
        return ended

    def release(self, waiting: Collection[str], now_ms: int, longest_hold_ms: int) -> list[str]:
        """Release those whose time has come, and return which of `waiting` are released.

        Args:
            waiting: writers whose answers are held back here.
            now_ms: the time.
            longest_hold_ms: who has waited so long is released whatever its slot.
        """
        for slot in [*self.slots.values()]:
            end = slot.closes_ms if slot.is_released else slot.asked_ms + longest_hold_ms
            if slot.is_over_at(now_ms) and not slot.has_passed:
                self.counts.slots_passed += 1
                self.slots[slot.writer] = replace(slot, has_passed=True)
            if end + KEPT_MS < now_ms:
                del self.slots[slot.writer]
        while True:
            ready = next(
                (
                    (slot, max(opens, now_ms + slot.back_off_ms))
                    for slot, opens in self._planned(now_ms)
                    if opens - slot.back_off_ms <= now_ms or now_ms - slot.asked_ms >= longest_hold_ms
                ),
                None,
            )
            if ready is None:
                return [
                    writer for writer in waiting if (own := self.slots.get(writer)) is None or own.is_released
                ]
            slot, opens = ready
            if now_ms - slot.asked_ms >= longest_hold_ms:
                opens = now_ms + slot.back_off_ms
            closes = opens + round(self._length_ms(slot))
            self.slots[slot.writer] = replace(slot, opens_ms=opens, closes_ms=closes)
            self.counts.slots_given += 1

    def next_release_ms(self, now_ms: int, longest_hold_ms: int) -> int | None:
        """Return when to ask again whether somebody may be released; None if no writer waits."""
        times = [
            min(opens - slot.back_off_ms, slot.asked_ms + longest_hold_ms)
            for slot, opens in self._planned(now_ms)
        ]
        return min(times, default=None)

    def _planned(self, now_ms: int) -> Iterator[tuple[Slot, int]]:
        """Yield those who wait and when their slots would open, the fewest retries first."""
        released = [slot for slot in self.slots.values() if slot.opens_ms is not None]
        last = max(released, key=lambda slot: slot.opens_ms or 0, default=None)
        last_opens = (last.opens_ms or 0) if last else 0
        waiting = [slot for slot in self.slots.values() if slot.opens_ms is None]
        for slot in sorted(waiting, key=lambda slot: (-slot.losses, slot.asked_ms)):
            opens = now_ms + slot.back_off_ms
            if last is not None:
                opens = max(opens, last_opens + round(self._distance_ms(last, slot)))
            yield slot, opens
            last, last_opens = slot, opens

    def _distance_ms(self, first: Slot, second: Slot) -> float:
        """Return how long after the first slot the second one opens."""
        if self._is_protected(first):
            return self._length_ms(first)
        return self.window_ms if self._is_protected(second) else self.spacing_ms

    def _length_ms(self, slot: Slot) -> float:
        safety = LAST_SAFETY if slot.losses >= slot.retries.count else SAFETY
        window = min(LONGEST_WINDOW_MS, max(self.window_ms, safety * slot.took_ms))
        return JITTER * slot.back_off_ms + window

    def _count(self, sequence: int, now_ms: int) -> None:
        """Learn how fast commits land."""
        before, since_ms = self.head
        if sequence == before or now_ms == since_ms:
            return
        if sequence > before > 0 and now_ms - since_ms < KEPT_MS:
            self.interval_ms += RECENT * ((now_ms - since_ms) / (sequence - before) - self.interval_ms)
        self.head = sequence, now_ms

    def _count_end(self, slot: Slot, now_ms: int, *, used: int = 0, lost: int = 0) -> None:
        """Count what has become of the slot of a writer that is back, if it had one."""
        if not slot.is_released or slot.has_passed:
            return
        if slot.is_over_at(now_ms):
            self.counts.slots_passed += 1
        else:
            self.counts.slots_used += used
            self.counts.slots_lost += lost

    def _learn(self, writer: str, now_ms: int, *, has_landed: bool) -> None:
        slot = self.slots.get(writer)
        if slot is None or slot.opens_ms is None:
            return
        took_ms = max(0.0, now_ms - slot.opens_ms)
        self.slots[writer] = replace(slot, took_ms=took_ms)
        window_ms = self.window_ms * (LONGER if took_ms > self.window_ms else SHORTER)
        self.window_ms = min(LONGEST_WINDOW_MS, max(SHORTEST_WINDOW_MS, window_ms))
        if not self._is_protected(slot):
            self.spacing_ms *= CLOSER if has_landed else WIDER
            self.spacing_ms = min(self.window_ms, max(SHORTEST_WINDOW_MS, self.spacing_ms))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        learnt = {
            "window-ms": self.window_ms,
            "spacing-ms": self.spacing_ms,
            "interval-ms": self.interval_ms,
            "head": self.head,
            "rush": None if self.rush is None else asdict(self.rush),
            "lease": None if self.lease is None else asdict(self.lease),
            "first-losses": self.first_losses,
            "sharing": self.sharing,
        }
        return learnt | {"slots": [asdict(slot) for slot in self.slots.values()]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LandingQueue:
        """Return what `to_json` has written."""
        slots = [Slot(**{**item, "retries": RetryRules(**item["retries"])}) for item in value["slots"]]
        learnt = value["window-ms"], value["spacing-ms"], value["interval-ms"]
        rush = Rush.from_json(value["rush"]) if value.get("rush") else None
        lease = LoadLease(**value["lease"]) if value.get("lease") else None
        head = value["head"][0], value["head"][1]
        known = dict(value.get("first-losses", {})), dict(value.get("sharing", {}))
        return cls({slot.writer: slot for slot in slots}, *learnt, head, rush, lease, *known)
