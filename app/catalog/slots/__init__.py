"""Slots: which of the writers that lost a race may try again when, so that each of them lands."""
