"""Lets `python -m app.cli` do what `icetower` does."""

from __future__ import annotations

from app.cli.main import run

run()
