"""`.env` in the working directory: reading it, and refusing lines of ours that say nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from app.errors import InvalidSetting

PREFIX = "ICETOWER_"
DOTENV = Path(".env")

_LINE_OF_OURS = re.compile(rf"^\s*(export\s+)?{PREFIX}", re.IGNORECASE | re.MULTILINE)


def read_dotenv() -> Mapping[str, str]:
    """Return the variables of the file, also those of others; none if there is no file.

    Raises:
        InvalidSetting: it cannot be read, or a line of ours is no assignment.
    """
    # A virtual environment of Python may have this name.
    if not os.path.lexists(DOTENV) or (DOTENV / "pyvenv.cfg").is_file():
        return {}
    try:
        _check_lines()
        return {name: value or "" for name, value in dotenv_values(DOTENV).items()}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"Cannot read {DOTENV}: {error}") from error


def _check_lines() -> None:
    """Refuse lines of ours that are no assignments: the library passes over them."""
    with DOTENV.open(encoding="utf-8") as file:
        for line in parse_stream(file):
            is_assignment = not line.error and (line.key is None or line.value is not None)
            if not is_assignment and _LINE_OF_OURS.search(line.original.string):
                raise InvalidSetting(
                    f"Cannot read line {line.original.line} of {DOTENV}: "
                    "expected NAME=value, and an end to each quote"
                )
