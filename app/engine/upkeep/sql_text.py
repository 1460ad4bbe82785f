"""Names and values as Spark SQL has them."""

from __future__ import annotations

import re


def quoted(part: str) -> str:
    """Return one part of a name, whatever it is made of."""
    return "`" + part.replace("`", "``") + "`"


def quoted_if_needed(part: str) -> str:
    """Return one part of a name, as people write it."""
    return part if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", part) else quoted(part)


def literal(text: str) -> str:
    """Return a string of SQL; the session must not have `escapedStringLiterals` on."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
