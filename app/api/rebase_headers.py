"""Headers with which a client asks for its commit to be rebased if another one comes first."""

from __future__ import annotations

import orjson

from app.api.bodies.json_body import check_count
from app.api.dependencies import Visit
from app.catalog.commits.rebases import NOTHING_ASKED, RebaseRequest
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import Expression
from app.engine.model.settings.rebase_settings import RebaseMode, mode_named, modes_in_words
from app.errors import InvalidFilter, InvalidRequest

_MODE, _FILTER = "X-Icetower-Rebase", "X-Icetower-Conflict-Filter"


def rebase_request(visit: Visit) -> RebaseRequest:
    """Return what a request says about rebasing.

    Raises:
        InvalidRequest: a header has no meaning; names it.
    """
    mode, conflict_filter = visit.header(b"x-icetower-rebase"), visit.header(b"x-icetower-conflict-filter")
    if mode is None and conflict_filter is None:
        return NOTHING_ASKED
    return RebaseRequest(
        None if mode is None else _mode(mode),
        None if conflict_filter is None else _filter(conflict_filter, visit.parts.max_body_values),
    )


def _mode(value: bytes) -> RebaseMode:
    text = value.decode("latin-1")
    mode = mode_named(text)
    if mode is None:
        raise InvalidRequest(f"Invalid {_MODE} {text[:100]!r}: it must be {modes_in_words()}")
    return mode


def _filter(value: bytes, max_values: int) -> Expression:
    try:
        check_count(value, max_values)
        return parse_expression(orjson.loads(value))
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"Invalid {_FILTER}: it is not JSON: {error}") from error
    except InvalidFilter as error:
        raise InvalidRequest(f"Invalid {_FILTER}: {error}") from error
