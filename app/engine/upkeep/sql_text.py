"""Names and values as Spark SQL has them."""

from __future__ import annotations


def quoted(part: str) -> str:
    """Return one part of a name, whatever it is made of."""
    return "`" + part.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a string of SQL; the session must not have `escapedStringLiterals` on."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
