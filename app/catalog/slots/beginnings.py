"""Beginnings: which writer of a contended table may load it next. Pure: times are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Final

from app.catalog.slots.queue import Before

Client = tuple[str, int]
"""A connection: the address and the port that it comes from."""

REMEMBERED_MS: Final = 60_000.0
"""How long a client that has committed counts as a writer."""
CONTENDED_MS: Final = 5_000.0
"""How long a table counts as contended after a lost race, or after a load that had to wait."""
FIRST_WINDOW_MS: Final = 60.0
SHORTEST_WINDOW_MS: Final = 3.0
LONGEST_WINDOW_MS: Final = 1_000.0
"""Who takes longer writes data between its load and its commit, and is not waited for: many can do that at a time."""
LONGER, SHORTER = 1.25, 0.975
"""How such a time grows when one takes longer, and shrinks when one takes less: nine of ten fit in."""
SAFETY: Final = 3.0
"""A writer that does not commit within so many windows after its load is waited for no longer."""
MOST_UNUSED: Final = 2
"""After so many loads in turn without a commit, a client's loads wait no more until it commits again."""
PROTECTED_LOSSES: Final = 2
"""A writer that has lost so often has a slot of its own: its load does not wait."""
LEASE_MS, LEASE_COURSES = 50.0, 2
"""A lease is at least so long, and so many courses: a server without writers holds up no other for longer."""
TURN_MS, TURN_COURSES = 100.0, 6
"""While it has writers it goes on for so long, and for so many courses, before it is another server's turn."""
LONGEST_TURN_MS: Final = 3_000.0
MOST_WRITERS: Final = 256


@dataclass(slots=True)
class Writer:
    """A client that has committed to the table."""

    seen_ms: float
    losses: int = 0
    """Races that its last snapshot has lost; 0 if that landed."""
    snapshot: str = ""
    """The id of the last snapshot that it sent."""
    unused: int = 0
    """Loads without a commit after them."""
    loads: int = 0
    """Loads since its last commit."""
    usual_loads: int = 1
    """Loads for each commit: engines load a table when they plan, and once more before they commit."""
    began_ms: float | None = None
    """When it was let go last; None once its commit has come."""
    let_go_ms: float | None = None
    """The same; None once its commit has ended."""


@dataclass(slots=True)
class Beginnings:
    """The writers of one table, as one process sees them.

    A writer loads the table, builds its snapshot and commits. Where writers collide, a load waits while another writer
    is between its load and the end of its commit: so no writer builds what must lose. Only clients that have committed
    to this table before are writers; loads of all others never wait.

    That needs a connection for each writer. Threads that share the connections of one client, and clients that connect
    anew each time, are seen by a writer that comes back on another connection, or on one that another writer has used
    meanwhile: then no load from its address waits.
    """

    writers: dict[Client, Writer] = field(default_factory=dict)
    waiting: dict[Client, float] = field(default_factory=dict)
    """Who waits with a load, and since when; in the order in which they go."""
    at_work: dict[Client, float | None] = field(default_factory=dict)
    """Who is on its way, and since when; None once its commit has come."""
    losers: dict[str, Client] = field(default_factory=dict)
    """Where writers have lost a race, by the ids of their snapshots, which they keep from one attempt to the next."""
    sharing: dict[str, float] = field(default_factory=dict)
    """Addresses whose writers have no connections of their own, and until when that is believed."""
    contended_until_ms: float = 0.0
    window_ms: float = FIRST_WINDOW_MS
    """How long most writers take from their load to their commit, as learnt."""
    course_ms: float = FIRST_WINDOW_MS
    """How long most take from their load to the end of their commit."""
    lease_until_ms: float = 0.0
    """Until when writers of this server may be on their way, before those of other servers are."""
    turn_until_ms: float = 0.0
    """Until when it may lengthen its lease although other servers wait."""
    has_learnt: bool = False
    """Whether it knows how long writers take: the first one says it, those after it correct it."""

    def may_begin(self, now_ms: float) -> bool:
        """Return whether a writer that begins now will most likely have ended before the lease has."""
        return now_ms + self.course_ms <= self.lease_until_ms

    def must_wait(self, client: Client, now_ms: float, *, may_begin: bool) -> bool:
        """Note a load; True if it has to wait until `release` names its client.

        Args:
            client: whose load.
            now_ms: the time.
            may_begin: whether writers of this server may begin now.
        """
        writer = self.writers.get(client)
        if (
            writer is None
            or now_ms >= self.contended_until_ms
            or now_ms - writer.seen_ms > REMEMBERED_MS
            or writer.unused >= MOST_UNUSED
            or self.shares(client, now_ms)
        ):
            return False
        writer.loads += 1
        if not writer.losses and writer.loads < writer.usual_loads:
            return False
        if writer.losses >= PROTECTED_LOSSES or (may_begin and not self.at_work and not self.waiting):
            self._begin(client, writer, now_ms)
            return False
        self.contended_until_ms = now_ms + CONTENDED_MS
        first = {client: now_ms} if writer.losses else {}
        last = {} if writer.losses else {client: now_ms}
        self.waiting = {**first, **self.waiting, **last}
        return True

    def shares(self, client: Client, now_ms: float) -> bool:
        """Return whether a load on a connection may be that of any writer at its address."""
        return now_ms < self.sharing.get(client[0], 0.0)

    def known_of(self, client: Client, now_ms: float) -> Before:
        """Return what is known of a client that has just lost a race, but for that loss."""
        if self.shares(client, now_ms):
            return Before(sharing=client[0])
        return Before(self.window_ms, waits_with_load=self.waits_with_load(client, now_ms))

    def waits_with_load(self, client: Client, now_ms: float) -> bool:
        """Return whether a client that has just lost a race waits with its load, not with its 409."""
        writer = self.writers.get(client)
        return writer is not None and writer.losses == 1 and not self.shares(client, now_ms)

    def leave(self, client: Client) -> None:
        """Note that a load waits no more: its client has gone."""
        self.waiting.pop(client, None)

    def release(self, now_ms: float, longest_hold_ms: float, *, may_begin: bool) -> list[Client]:
        """Return whose loads may go on now.

        Those are the next one's, if no writer is on its way, and those that have waited too long.
        """
        self.forget_late(now_ms)
        going = [
            client
            for client, since_ms in self.waiting.items()
            if now_ms - since_ms >= longest_hold_ms or self.shares(client, now_ms)
        ]
        for client in going:
            del self.waiting[client]
        if may_begin and self.waiting and not self.at_work:
            client = next(iter(self.waiting))
            del self.waiting[client]
            going.append(client)
            self._begin(client, self.writers.setdefault(client, Writer(now_ms)), now_ms)
        return going

    def forget_late(self, now_ms: float) -> None:
        """Wait no longer for writers that have not committed in time."""
        for client, since_ms in [*self.at_work.items()]:
            if since_ms is not None and now_ms - since_ms >= SAFETY * self.window_ms:
                del self.at_work[client]
                if client in self.writers:
                    self.writers[client].unused += 1
                    self.writers[client].let_go_ms = None

    def next_ms(self, longest_hold_ms: float) -> float | None:
        """Return when to call `release` next if nothing happens before; None if no load waits."""
        if not self.waiting:
            return None
        ends = [
            since_ms + SAFETY * self.window_ms for since_ms in self.at_work.values() if since_ms is not None
        ]
        return min([*ends, *(since_ms + longest_hold_ms for since_ms in self.waiting.values())])

    def note_commit(self, client: Client, now_ms: float) -> None:
        """Note that a commit has come."""
        if now_ms >= self.contended_until_ms or self.shares(client, now_ms):
            return
        self.at_work[client] = None
        writer = self.writers.get(client)
        if writer is not None and writer.began_ms is not None:
            took_ms, writer.began_ms = now_ms - writer.began_ms, None
            self.window_ms = self._learnt(self.window_ms, took_ms)

    def lease_ms(self, now_ms: float) -> int:
        """Return for how long to ask for the table: a lease that is lengthened ends with the turn."""
        length_ms = max(LEASE_MS, LEASE_COURSES * self.course_ms) if self.has_learnt else TURN_MS
        return ceil(min(length_ms, self.turn_until_ms - now_ms) if self.may_lengthen(now_ms) else length_ms)

    @property
    def has_lost(self) -> bool:
        """Whether a writer waits that has lost a race."""
        return any(client in self.writers and self.writers[client].losses for client in self.waiting)

    def may_lengthen(self, now_ms: float) -> bool:
        """Return whether a writer that begins now will end in this server's turn."""
        return now_ms < self.lease_until_ms and now_ms + self.course_ms <= self.turn_until_ms

    def note_lease(self, now_ms: float, taken_ms: float, *, lengthens: bool = False) -> None:
        """Note for how long it has the table from now on.

        Args:
            now_ms: the time.
            taken_ms: for how long; 0 if another server has it.
            lengthens: what `may_lengthen` said when it asked; the lease before may have ended until the answer came.
        """
        if taken_ms and not lengthens:
            # Before it is known how long writers take, a turn of so many would be far too long where files are near.
            turn_ms = max(TURN_MS, TURN_COURSES * self.course_ms if self.has_learnt else 0.0)
            self.turn_until_ms = now_ms + min(LONGEST_TURN_MS, turn_ms)
        self.lease_until_ms = now_ms + taken_ms

    def note_end(self, client: Client, now_ms: float, *, writer: str | None, has_lost: bool) -> None:
        """Note that a commit has ended.

        Args:
            client: whose.
            now_ms: the time.
            writer: the id of the snapshot that it adds; its client counts as a writer then.
            has_lost: whether others came first.
        """
        self.at_work.pop(client, None)
        if writer is None:
            return
        if has_lost:
            self.contended_until_ms = now_ms + CONTENDED_MS
        lost_at = self.losers.pop(writer, None)
        if (
            lost_at is not None
            and lost_at[0] == client[0]
            and self._was_others_since(lost_at, client, writer)
        ):
            self.note_sharing(client[0], now_ms + REMEMBERED_MS)
        if has_lost:
            if len(self.losers) >= MOST_WRITERS:
                del self.losers[next(iter(self.losers))]
            self.losers[writer] = client
        if not self.shares(client, now_ms):
            self._note_writer(client, writer, now_ms, has_lost=has_lost, is_retry=lost_at == client)

    def _was_others_since(self, lost_at: Client, client: Client, writer: str) -> bool:
        """Return whether a loser comes back elsewhere, or others have used its connection."""
        known = self.writers.get(client)
        return lost_at != client or (known is not None and known.snapshot != writer)

    def note_sharing(self, address: str, until_ms: float) -> None:
        """Note that writers at an address have no connections of their own."""
        if address not in self.sharing and len(self.sharing) >= MOST_WRITERS:
            del self.sharing[min(self.sharing, key=self.sharing.__getitem__)]
        self.sharing[address] = max(until_ms, self.sharing.get(address, 0.0))
        for known in [known for known in self.writers if known[0] == address]:
            del self.writers[known]
            self.at_work.pop(known, None)

    def _note_writer(
        self, client: Client, snapshot: str, now_ms: float, *, has_lost: bool, is_retry: bool
    ) -> None:
        if client not in self.writers and len(self.writers) >= MOST_WRITERS:
            del self.writers[min(self.writers, key=lambda item: self.writers[item].seen_ms)]
        writer = self.writers.setdefault(client, Writer(now_ms))
        writer.snapshot = snapshot
        if writer.let_go_ms is not None and not has_lost:
            took_ms = now_ms - writer.let_go_ms
            self.course_ms = self._learnt(self.course_ms, took_ms)
            if not self.has_learnt and took_ms <= LONGEST_WINDOW_MS:
                self.has_learnt = True
                # It took the lease before it knew how long writers take.
                self.lease_until_ms = min(self.lease_until_ms, now_ms + self.lease_ms(now_ms))
        writer.let_go_ms = None
        if writer.loads and not has_lost and not writer.losses:
            writer.usual_loads = writer.loads
        writer.seen_ms, writer.unused, writer.loads = now_ms, 0, 0
        writer.losses = (1 + writer.losses * is_retry) if has_lost else 0

    def _begin(self, client: Client, writer: Writer, now_ms: float) -> None:
        self.at_work[client] = writer.began_ms = writer.let_go_ms = now_ms

    def _learnt(self, usual_ms: float, took_ms: float) -> float:
        """Return how long most take, now that one more is known.

        One that took very long is no measure: it wrote data meanwhile, or waited for something.
        """
        if took_ms > LONGEST_WINDOW_MS:
            return usual_ms
        factor = LONGER if took_ms > usual_ms else SHORTER
        learnt_ms = usual_ms * factor if self.has_learnt else took_ms
        return min(LONGEST_WINDOW_MS, max(SHORTEST_WINDOW_MS, learnt_ms))
