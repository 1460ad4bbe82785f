"""The newest metadata file of a view, from the version logs: views have no metadata log.

Source: view-spec.md, version-log.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.chains.verdicts import Evidence, FoundView, Verdict


def newest_view(files: Sequence[FoundView]) -> Verdict[FoundView]:
    """Return which metadata file of one view is the newest.

    A file is older than another one whose log goes on after its own last entry. Changes that make no version, as of
    properties, leave equal logs: between those only the numbers in the names say something.
    """
    heads = [file for file in files if not any(_goes_on(other, file) for other in files)]
    if not heads:
        return Verdict(None, reason="no metadata file of it is left")
    if len(heads) == 1:
        return Verdict(heads[0], Evidence.VERSION_LOG)
    others = tuple(head.location for head in heads)
    if len({head.version_log[-1:] for head in heads}) > 1:
        reason = "the version logs of several metadata files go on in different ways"
        return Verdict(None, reason=reason, others=others)
    highest = max(-1 if head.number is None else head.number for head in heads)
    found = [head for head in heads if head.number == highest]
    if len(found) != 1:
        reason = "several metadata files have equal version logs, and nothing distinguishes them"
        return Verdict(None, reason=reason, others=others)
    reason = "others have the same version log; only the number in its name speaks for this one"
    return Verdict(
        found[0], Evidence.NUMBER, reason, tuple(head.location for head in heads if head is not found[0])
    )


def _goes_on(later: FoundView, earlier: FoundView) -> bool:
    """Say whether a log goes on after the last entry of another one."""
    last = earlier.version_log[-1:]
    return bool(last) and last[0] in later.version_log[:-1] and later.version_log[-1] != last[0]
