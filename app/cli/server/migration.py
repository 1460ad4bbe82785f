"""`icetower migrate`: brings the database to a revision."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from app.cli.server.database_failures import naming_database
from app.cli.terminal.output import print_json, print_line
from app.database.connections.database import Database
from app.database.connections.sqlite_files import prepare_file
from app.database.schema.migrations import downgrade, migrate
from app.database.schema.revisions import found_revision
from app.errors import InvalidSetting
from app.setting_types import mask_url_password
from app.settings import load_settings


def run_migration(
    flags: Mapping[str, object], config_file: Path | None, *, revision: str, is_down: bool, as_json: bool
) -> None:
    """Bring the database up or down to a revision and print the revisions before and after."""
    if not revision:
        raise InvalidSetting("Invalid --to: it is empty; give a revision, such as 0001 or head")
    if is_down and revision == "head":
        raise InvalidSetting("--down needs --to: a revision, such as 0001, or base")
    settings = load_settings(flags, config_file).settings
    url = settings.database_url.get_secret_value()
    prepare_file(url)
    with naming_database(url), closing(Database.open(url, pool_size=1)) as database:
        _check_direction(found_revision(database), revision, is_down=is_down)
        before = (downgrade if is_down else migrate)(database, revision)
        after = found_revision(database)
    shown = mask_url_password(url)
    if as_json:
        print_json({"database": shown, "before": before, "after": after})
    elif before == after:
        print_line(f"{shown} is at revision {after or 'none'} already; nothing to do.")
    else:
        print_line(f"{shown} went from revision {before or 'none'} to {after or 'none'}.")


def _check_direction(found: str | None, wanted: str, *, is_down: bool) -> None:
    """Check that a revision lies in the direction that was asked for.

    Otherwise Alembic does nothing, and says nothing.

    Raises:
        InvalidSetting: it does not.
    """
    # The names of revisions are numbers of four digits.
    if found is None or not wanted.isdecimal() or len(wanted) != len(found):
        return
    if not is_down and wanted < found:
        raise InvalidSetting(f"The database is at revision {found}; to go back to {wanted}, add --down")
    if is_down and wanted > found:
        raise InvalidSetting(f"The database is at revision {found}; to go up to {wanted}, leave out --down")
