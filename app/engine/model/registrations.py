"""Registrations: numbers that say where the metadata of a pointer came from."""

from __future__ import annotations


def is_read_only(registration: int) -> bool:
    """Say whether a registration is one of a table or view that belongs to another catalog.

    0 is what was created here. Other numbers are drawn, one for each registration: positive ones are of tables that
    were taken over, negative ones of tables that are only looked at.
    """
    return registration < 0
