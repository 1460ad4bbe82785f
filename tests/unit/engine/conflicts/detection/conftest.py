"""A branch to ask about."""

from __future__ import annotations

import pytest

from tests.builders.branches import Branch
from tests.unit.engine.conflicts.detection.questions import OLD, OTHER


@pytest.fixture
def branch() -> Branch:
    """Two files, of the kinds a and b."""
    made = Branch()
    made.commit("append", [OLD, OTHER])
    return made
