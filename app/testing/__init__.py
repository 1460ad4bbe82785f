"""A catalog inside a test: context manager and pytest plugin.

pytest imports this package in every run of an environment that Icetower is installed in, because its plugin lives here.
So it imports nothing of the server until `icetower_catalog` is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.testing.running_catalog import icetower_catalog

__all__ = ["icetower_catalog"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("app.testing.running_catalog"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
