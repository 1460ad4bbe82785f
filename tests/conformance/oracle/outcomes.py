"""What came of a request: new metadata, or a refusal with its words and the step that refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
"""A JSON object."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The document that came out; `has_changes` is False when there was nothing to write."""

    document: Json
    has_changes: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal.

    `step` says where: `base`, `parse 2` and `apply 2` for the third update, `build` at the end. A conflict is
    answered with 409, so that the writer tries again; all other refusals are final.
    """

    message: str
    step: str
    is_conflict: bool = False


Outcome = Accepted | Refused
