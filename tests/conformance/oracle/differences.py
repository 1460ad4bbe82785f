"""How two answers to one question are compared: what is changed in both first, and which refusals are forgiven."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.conformance.oracle.outcomes import Accepted, Json, Outcome, Refused

Side = Literal["icetower", "reference"]
ABSENT = "(absent)"


@dataclass(frozen=True)
class Case:
    """What both sides were asked."""

    base: Mapping[str, Any] = field(default_factory=dict)
    updates: Sequence[Json] = ()

    def added_snapshots(self) -> list[Json]:
        return [item["snapshot"] for item in self.updates if item["action"] == "add-snapshot"]

    def finds_schema_there(self) -> bool:
        """Tell whether an added schema equals one of the base or of an earlier update."""
        if not self.has("add-schema"):
            return False
        seen = [_columns(schema) for schema in self.base.get("schemas", ())]
        for item in self.updates:
            if item["action"] == "add-schema":
                if _columns(item["schema"]) in seen:
                    return True
                seen.append(_columns(item["schema"]))
        return False

    def has(self, *actions: str) -> bool:
        return any(item["action"] in actions for item in self.updates)


def _columns(schema: Json) -> tuple[Any, set[int]]:
    return schema["fields"], set(schema.get("identifier-field-ids", ()))


@dataclass(frozen=True)
class Normalisation:
    """A change to both documents, after which they must be equal."""

    name: str
    reason: str
    change: Callable[[Json, Case], None]


@dataclass(frozen=True)
class RefusalDifference:
    """A refusal that only one side knows, told by that side's words."""

    name: str
    reason: str
    refused_by: Literal["icetower", "reference"]
    message: str
    applies: Callable[[Case], bool] = lambda _case: True


@dataclass(frozen=True)
class Agreement:
    """All that is forgiven, and which words must be the same.

    `changes_nothing` tells of a case whether the reference may count as a change what changes nothing.
    """

    normalisations: tuple[Normalisation, ...]
    refusals: tuple[RefusalDifference, ...]
    exact_messages: tuple[str, ...] = ()
    changes_nothing: Callable[[Case], bool] = lambda _case: False

    def check(self, asked: Case, reference: Outcome, icetower: Outcome) -> None:
        """Fail unless both sides say the same, or differ as agreed."""
        told = f"\nreference: {reference}\nicetower:  {icetower}"
        match reference, icetower:
            case Refused(), Refused():
                # A fault that only one side knows may hide the one that both know.
                if not self.excuse(asked, "reference", reference) and not self.excuse(
                    asked, "icetower", icetower
                ):
                    self._check_same_refusal(reference, icetower)
            case Refused(), Accepted():
                assert self.excuse(asked, "reference", reference) is not None, told
            case Accepted(), Refused():
                assert self.excuse(asked, "icetower", icetower) is not None, told
            case Accepted(), Accepted():
                self._check_same_document(asked, reference, icetower)

    def excuse(self, asked: Case, refused_by: Side, refused: Refused) -> RefusalDifference | None:
        """Return the agreed difference that explains why only this side refuses."""
        for difference in self.refusals:
            if (
                difference.refused_by == refused_by
                and re.match(difference.message, refused.message)
                and difference.applies(asked)
            ):
                return difference
        return None

    def normalised(self, document: Mapping[str, Any], asked: Case) -> Json:
        """Return a copy of a document in which only real differences are left."""
        changed = copy.deepcopy(dict(document))
        for normalisation in self.normalisations:
            normalisation.change(changed, asked)
        return changed

    def _check_same_document(self, asked: Case, reference: Accepted, icetower: Accepted) -> None:
        theirs, ours = self.normalised(reference.document, asked), self.normalised(icetower.document, asked)
        if reference.has_changes and not icetower.has_changes and self.changes_nothing(asked):
            # The reference writes a file whose only news is the file before it.
            theirs.pop("metadata-log", None)
            ours.pop("metadata-log", None)
        else:
            assert icetower.has_changes == reference.has_changes
        differing = list(differing_parts(theirs, ours))
        assert not differing, f"part, reference, icetower: {differing}"

    def _check_same_refusal(self, reference: Refused, icetower: Refused) -> None:
        """Fail if both refuse the same step in ways that a client can tell apart.

        A list may hold several faults, and each side is free to notice a later one first; what is only noticed at
        the end has no step of its own.
        """
        if reference.step != icetower.step or reference.step == "build":
            return
        told = f"\nreference: {reference}\nicetower:  {icetower}"
        assert icetower.is_conflict == reference.is_conflict, told
        for pattern in self.exact_messages:
            expected = re.match(pattern, reference.message)
            if expected is not None:
                found = re.match(pattern, icetower.message)
                assert found is not None, told
                assert found[0] == expected[0]


def differing_parts(theirs: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the smallest parts of two documents that differ, each with its path."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted(theirs.keys() | ours.keys()):
            yield from differing_parts(theirs.get(name, ABSENT), ours.get(name, ABSENT), f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for position, pair in enumerate(zip(theirs, ours, strict=True)):
            yield from differing_parts(*pair, f"{path}[{position}]")
    elif theirs != ours or type(theirs) is not type(ours):
        yield path, theirs, ours
