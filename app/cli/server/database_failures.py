"""Which database does not answer, and what its driver says: for the terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.database.connections.driver_errors import origin_of
from app.errors import DatabaseUnavailable
from app.setting_types import mask_url_password


@contextmanager
def naming_database(url: str) -> Iterator[None]:
    """Add to a failure which database it is, without its password, and the driver's own words."""
    try:
        yield
    except DatabaseUnavailable as error:
        cause = error.__cause__
        words = str(origin_of(cause)).strip().splitlines()[:1] if isinstance(cause, Exception) else []
        raise DatabaseUnavailable(": ".join([str(error), mask_url_password(url), *words])) from error
