"""Frames of errors: they hold what was at work, such as the body of a request."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

MANY_FAULTS = 1000
"""An error of pydantic with more is not looked into: it makes an object of each, in which time nothing else runs."""


def let_go_of_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error, of those behind it, and of those inside it.

    Their frames hold the request's body, in cycles with the error that only a garbage collection would find: refused
    requests would pile up in memory until then. What is inside an error of pydantic no collection ever finds. (One of
    very many faults is not looked into, so nothing that lives on may refer to it.)
    """
    behind: list[BaseException | None] = [error]
    seen: set[int] = set()
    while behind:
        found = behind.pop()
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            found.__traceback__ = None
            behind += (found.__cause__, found.__context__, *_inside(found))


def _inside(error: BaseException) -> Iterator[BaseException]:
    """Yield what validators have raised."""
    if isinstance(error, ValidationError) and error.error_count() <= MANY_FAULTS:
        for each in error.errors(include_url=False, include_input=False):
            inner = each.get("ctx", {}).get("error")
            if isinstance(inner, BaseException):
                yield inner
