"""What trees of files and file-system tables cannot do, as an error: nothing was changed."""

from __future__ import annotations

from app.errors import BadRequest


class TreeRefusal(BadRequest):
    """A wish that a warehouse of layout hadoop, or its store, cannot fulfil."""
