"""Exit statuses of `icetower`, for scripts; 0 is success."""

from __future__ import annotations

from typing import Final

REFUSED: Final = 1
"""The request was refused, or it failed; standard error says why."""
WRONG_USAGE: Final = 2
WOULD_FAIL: Final = 3
"""The question was answered, and the answer is that the commit or operation would be refused."""
STOPPED: Final = 130
"""A person has stopped it with Ctrl+C; shells say it so too."""
