"""`icetower config show`: every setting with its source."""

from __future__ import annotations

from pathlib import Path

from app.cli.terminal.output import print_json
from app.cli.terminal.rendering import print_table
from app.settings import effective_settings, load_settings


def print_settings(config_file: Path | None, *, as_json: bool) -> None:
    """Print every setting in force, its source and its meaning."""
    settings = effective_settings(load_settings(config_file=config_file))
    if as_json:
        print_json({found.name: {"value": found.value, "source": found.source} for found in settings})
        return
    rows = [[found.name, _written(found.value), found.source, found.description] for found in settings]
    print_table(["setting", "value", "source", "meaning"], rows)


def _written(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} = {inner}" for key, inner in value.items()) or "–"
    if value is None:
        return "–"
    if isinstance(value, tuple):
        return "\n".join(str(inner) for inner in value) or "–"
    return str(value).lower() if isinstance(value, bool) else str(value)
