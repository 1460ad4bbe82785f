"""Slots: when each writer that lost a race may try again, so that all of them land."""
