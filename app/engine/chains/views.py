"""The newest metadata file of a view, from the version logs: views have no metadata log.

Source: view-spec.md, version-log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from app.engine.chains.tables import Since
from app.engine.chains.verdicts import Evidence, FoundView, Verdict
from app.engine.model.ids import Location

_Entry = tuple[int, int]


def newest_view(files: Sequence[FoundView], since: Since | None = None) -> Verdict[FoundView]:
    """Return which metadata file of one view is the newest.

    A file is older than another one whose log goes on after its own last entry. Changes that make no version, as of
    properties, leave equal logs, and a log that was cut may say nothing of the files before: between those only the
    numbers in the names say something.

    Args:
        files: metadata files of one view, each place once.
        since: an earlier place of the pointer; what branches off before it does not count.
    """
    if since is not None:
        files = _not_before(files, since)
    followers = _followers(files)
    heads = [file for file in files if not followers[_last(file)] - {_last(file)}]
    if not heads:
        return Verdict(None, reason="no metadata file of it is left")
    if len(heads) == 1:
        return Verdict(heads[0], Evidence.VERSION_LOG)
    others = tuple(head.location for head in heads)
    if _part(heads):
        reason = "the version logs of several metadata files go on in different ways"
        return Verdict(None, reason=reason, others=others)
    highest = max(-1 if head.number is None else head.number for head in heads)
    found = [head for head in heads if head.number == highest]
    if len(found) != 1:
        reason = (
            "the version logs of several metadata files do not say which is the newest, and nothing else does"
        )
        return Verdict(None, reason=reason, others=others)
    reason = "the version logs of others do not say that they are older; only the number in its name does"
    return Verdict(
        found[0], Evidence.NUMBER, reason, tuple(head.location for head in heads if head is not found[0])
    )


def is_later(file: FoundView, than: FoundView) -> bool:
    """Say whether one file of a view follows another one, as far as the two say so."""
    last = _last(than)
    if last in file.version_log[:-1]:
        return True
    # Other changes than versions leave no time.
    return (
        last == _last(file)
        and file.number is not None
        and than.number is not None
        and file.number > than.number
    )


def versions_after(file: FoundView, than: FoundView) -> int:
    """Return how many entries a log has after the last one that another log has, too.

    0 if they share none.
    """
    there = set(than.version_log)
    shared = [index for index, entry in enumerate(file.version_log) if entry in there]
    return len(file.version_log) - 1 - shared[-1] if shared else 0


def versions_beside(files: Sequence[FoundView], since: Since) -> tuple[Location, ...]:
    """Return the last files of commits to a view that landed beside its pointer.

    A writer that lost a race leaves one file, with the versions of all that were to land together. Where another one
    follows it, it was current.
    """
    base = next((file for file in files if file.place == since.place), None)
    if base is None:
        return ()
    beside = [
        file
        for file in files
        if versions_after(file, base) and file.place not in since.left and not is_later(file, base)
    ]
    return tuple(
        file.location
        for file in beside
        if any(is_later(file, other) for other in beside)
        and not any(is_later(other, file) for other in beside)
    )


def _not_before(files: Sequence[FoundView], since: Since) -> list[FoundView]:
    """Return the file at an earlier place of the pointer, and those that may follow it.

    What follows has its last entry too, or a log that was cut after it. If that is all that is known, the number in
    its name must be higher.
    """
    base = next((file for file in files if file.place == since.place), None)
    kept = [file for file in files if file.place == since.place or file.place not in since.left]
    if base is None:
        return kept
    before = set(base.version_log[:-1])
    return [file for file in kept if file is base or _may_follow(file, base, before)]


def _may_follow(file: FoundView, base: FoundView, before: set[_Entry]) -> bool:
    if _last(base) in file.version_log[:-1]:
        return True
    if _last(base) not in file.version_log and not before.isdisjoint(file.version_log):
        return False
    return file.number is None or base.number is None or file.number > base.number


def _followers(files: Sequence[FoundView]) -> defaultdict[_Entry | None, set[_Entry | None]]:
    """Return the last entries of the logs that go on after each entry."""
    followers: defaultdict[_Entry | None, set[_Entry | None]] = defaultdict(set)
    for file in files:
        for entry in file.version_log[:-1]:
            followers[entry].add(_last(file))
    return followers


def _part(heads: Sequence[FoundView]) -> bool:
    """Say whether logs have an entry in common, and end differently."""
    ends: dict[_Entry, _Entry | None] = {}
    return any(
        ends.setdefault(entry, _last(head)) != _last(head) for head in heads for entry in head.version_log
    )


def _last(file: FoundView) -> _Entry | None:
    return file.version_log[-1] if file.version_log else None
