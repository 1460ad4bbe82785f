"""The newest metadata file of a table, from the chain that the metadata logs make.

A log names only files that the table's pointer has really named: its writer had read the one before. So what a
log names is proven, and what stands after it there has followed it. Numbers in names and times of files prove nothing:
a writer that lost a race leaves a file with the number of the winner's, and perhaps a later time.

Source: spec.md, metadata-log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from app.engine.chains.verdicts import Evidence, FoundTable, Verdict
from app.engine.model.ids import Location


@dataclass(frozen=True, slots=True)
class Since:
    """Where the pointer of a table was when a backup or an export was made."""

    place: str
    left: frozenset[str] = frozenset()
    """Files that it had named and left by then, as when the table was set back to an earlier one."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files of one table that nothing proves to be old."""

    standing: tuple[FoundTable, ...]
    passed: tuple[FoundTable, ...] = ()
    """Files that no log names, and that others have passed: losers of races."""
    reason: str | None = field(default=None)
    """Why there are none."""


def candidates_of(files: Sequence[FoundTable], since: Since | None = None) -> Candidates:
    """Return which files of one table may be its newest.

    Args:
        files: metadata files of one table, each place once. Those that are named by others may be left out.
        since: an earlier place of the pointer; what branches off before it does not count.
    """
    if since is not None:
        files = _not_before(files, since)
    if not files:
        return Candidates((), reason="no metadata file of it is left")
    named = {place for file in files for place in file.log} | ({since.place} if since is not None else set())
    within = {place for file in files for place in file.log}
    heads = [file for file in files if file.place not in within]
    if not heads:
        return Candidates(
            (), reason="each of its metadata files is named by another one: the logs form a circle"
        )
    followers = _followers(files)
    proven = [file for file in files if file.place in named]
    standing: list[FoundTable] = []
    passed: list[FoundTable] = []
    for head in heads:
        is_passed = head.parent is not None and bool(followers[head.parent] - {head.place})
        is_behind = any(_is_behind(head, other) for other in proven if other is not head)
        (passed if is_passed or is_behind else standing).append(head)
    if not standing:
        return Candidates((), tuple(passed), "its metadata files contradict each other")
    return Candidates(tuple(standing), tuple(passed))


def landed_beside(files: Sequence[FoundTable], since: Since) -> tuple[Location, ...]:
    """Return the last files of commits that landed beside the way to a place of the pointer.

    A writer that lost a race has built on a file of that way. Where a file has another parent, that one was current.

    Args:
        files: as for `candidates_of`.
        since: the place of the pointer.
    """
    by_place = {file.place: file for file in files}
    if since.place not in by_place:
        return ()
    on_way = set(_ancestry(by_place[since.place], by_place))
    within = {place for file in files for place in file.log}
    left = since.left - on_way  # It may have come back to what it had left.
    return tuple(
        file.location
        for file in files
        if file.parent is not None
        and file.place not in within | on_way | left
        and file.parent not in on_way
        and not on_way.isdisjoint(file.log)
        and since.place not in file.log
        and left.isdisjoint(file.log)
    )


def newest_of(candidates: Candidates, lacking: Collection[str]) -> Verdict[FoundTable]:
    """Return which candidate is the newest.

    Args:
        candidates: what `candidates_of` has left.
        lacking: the places of those whose current snapshot's manifest list is missing.
    """
    heads, evidence = list(candidates.standing), Evidence.CHAIN
    if not heads:
        return Verdict(None, reason=candidates.reason, others=_locations(candidates.passed))
    whole = [head for head in heads if head.place not in lacking]
    if not whole:
        reason = "the manifest list of its current snapshot is missing"
        return Verdict(None, reason=reason, others=_locations(heads))
    if len(whole) < len(heads):
        heads, evidence = whole, Evidence.LISTS
    if len(heads) == 1:
        return _sole(heads[0], evidence, candidates.passed)
    versions = [head.file_system_version for head in heads]
    folders = {head.place.rpartition("/")[0] for head in heads}
    if None not in versions and len(set(versions)) == len(versions) and len(folders) == 1:
        # Without a catalog, the rename to the next version is the commit.
        newest = max(heads, key=lambda head: head.file_system_version or 0)
        return Verdict(newest, Evidence.FILE_SYSTEM)
    if len({head.parent for head in heads}) > 1 or heads[0].parent is None:
        reason = "several of its metadata files are named by no other, and they follow different ones"
        return Verdict(None, reason=reason, others=_locations(heads))
    return _likeliest(heads)


def _sole(head: FoundTable, evidence: Evidence, passed: Sequence[FoundTable]) -> Verdict[FoundTable]:
    later = [other for other in passed if other.last_updated_ms > head.last_updated_ms]
    if not later:
        return Verdict(head, evidence)
    # A loser is written before what passes it. A table that was set back goes on from an old file later.
    reason = (
        "a file that was passed says that it is younger: the table may have been set back to an earlier one"
    )
    return Verdict(head, evidence, reason, _locations(later))


def _likeliest(heads: Sequence[FoundTable]) -> Verdict[FoundTable]:
    """Return the likeliest of several heads with one parent; all but one have lost a race."""
    ladder: list[tuple[Evidence, Callable[[FoundTable], int]]] = [
        (Evidence.SEQUENCE, lambda head: head.counters[0]),
        (Evidence.UPDATED, lambda head: head.last_updated_ms),
    ]
    for evidence, number_of in ladder:
        highest = max(map(number_of, heads))
        found = [head for head in heads if number_of(head) == highest]
        if len(found) == 1:
            others = _locations(head for head in heads if head is not found[0])
            reason = f"others follow the same file; only {evidence.value} speaks for this one"
            return Verdict(found[0], evidence, reason, others)
    reason = "several metadata files follow the same one, and nothing distinguishes them"
    return Verdict(None, reason=reason, others=_locations(heads))


def _not_before(files: Sequence[FoundTable], since: Since) -> list[FoundTable]:
    """Return the files without those that branch off before an earlier place of the pointer.

    What has no file in common with the way to that place may follow it: the files between may have been deleted.
    """
    by_place = {file.place: file for file in files}
    way = _ancestry(by_place[since.place], by_place) if since.place in by_place else [since.place]
    on_way, kept = set(way), []
    for file in files:
        if file.place == since.place:
            kept.append(file)
        elif file.place not in since.left and file.parent not in since.left:
            common = [place for place in _ancestry(file, by_place) if place in on_way]
            if not common or common[-1] == since.place or file.place in on_way:
                kept.append(file)
    return kept


def _ancestry(file: FoundTable, by_place: Mapping[str, FoundTable]) -> list[str]:
    """Return the places before a file and its own, oldest first, as far as logs lead back."""
    places, met = [*file.log, file.place], {file.place}
    while places[0] not in met and places[0] in by_place:
        met.add(places[0])
        places = [*by_place[places[0]].log, *places]
    return places


def _followers(files: Sequence[FoundTable]) -> defaultdict[str, set[str]]:
    """Return what is proven to have followed each file."""
    followers: defaultdict[str, set[str]] = defaultdict(set)
    named = {place for file in files for place in file.log}
    for file in files:
        for before, after in pairwise(file.log):
            followers[before].add(after)
        if file.place in named and file.parent is not None:
            followers[file.parent].add(file.place)
    return followers


def _is_behind(head: FoundTable, proven: FoundTable) -> bool:
    return any(mine < theirs for mine, theirs in zip(head.counters, proven.counters, strict=True))


def _locations(files: Iterable[FoundTable]) -> tuple[Location, ...]:
    return tuple(file.location for file in files)
