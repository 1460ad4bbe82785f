"""Lets `python -m app.cli` do what `icetower` does."""

from __future__ import annotations

from app.cli.start import run

run()
