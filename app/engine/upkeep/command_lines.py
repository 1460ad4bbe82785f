"""Names as the `icetower` command takes them, for advice that people copy."""

from __future__ import annotations

from app.engine.model.identifiers import Namespace, TableIdentifier


def on_the_command_line(name: Namespace | TableIdentifier, warehouse: str) -> str:
    """Return a name with its warehouse: another one may have something of that name.

    A separator other than the usual one joins names with dots.
    """
    pieces = name.levels if isinstance(name, Namespace) else (*name.namespace.levels, name.name)
    separator = next((mark for mark in "./:|" if not any(mark in piece for piece in pieces)), ".")
    joined = separator.join(pieces)
    if not all(character.isalnum() or character in "._-/:" for character in joined):
        joined = "'" + joined.replace("'", "'\\''") + "'"
    option = "" if separator == "." else f" --separator '{separator}'"
    return f"{joined}{option} --warehouse {warehouse}"
