"""Who is asking. The one place where authentication will come; until then every caller is the same."""

from __future__ import annotations

from starlette.types import Scope

ANONYMOUS = "anonymous"


def principal_of(_scope: Scope) -> str:
    """Return the name under which a caller's changes are recorded and its Idempotency-Keys are kept."""
    return ANONYMOUS
