"""Pages of listings: which part is asked for, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a listing: names after `after`, at most `limit` of them; None for all."""

    after: str | None = None
    limit: int | None = None

    @property
    def read_limit(self) -> int | None:
        """How many items to read so that it shows whether more follow."""
        return None if self.limit is None else self.limit + 1


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """One page, and the name after which the next one starts; None when this is the last."""

    items: Sequence[Item]
    next_after: str | None


def page_of(names: tuple[str, ...], page: Page) -> Listing[str]:
    """Cut a list that was read with one name more than the page holds."""
    if page.limit is None or len(names) <= page.limit:
        return Listing(names, None)
    return Listing(names[: page.limit], names[page.limit - 1])
