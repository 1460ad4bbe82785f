"""`icetower backup`: a copy of a SQLite database that is in use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app.cli.terminal.output import print_json, print_line
from app.database.backups import back_up
from app.setting_types import mask_url_password
from app.settings import load_settings


def run_backup(flags: Mapping[str, object], config_file: Path | None, file: Path, *, as_json: bool) -> None:
    """Copy the database to a new file, and print how large it is."""
    url = load_settings(flags, config_file).settings.database_url.get_secret_value()
    size_bytes = back_up(url, file)
    shown = mask_url_password(url)
    if as_json:
        print_json({"database": shown, "file": str(file), "bytes": size_bytes})
    else:
        print_line(f"Copied {shown} to {file}: {size_bytes} bytes.")
