"""The `icetower` command: all its parts, and the exit status and line for each failure."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from app.cli.server import commands as server
from app.cli.tables.conflict_lines import conflict_lines
from app.cli.terminal.exit_statuses import REFUSED, STOPPED, WRONG_USAGE
from app.cli.terminal.output import print_failure, print_line, remark
from app.client.http.failures import CallFailed, CatalogRefused, CatalogUnreachable
from app.errors import IcetowerError, InvalidSetting
from app.moving.sources import SourceFailed

_ALONE = frozenset({"serve", "migrate", "rebuild", "backup"})
"""Commands that need none of the others, whose libraries would take a third of the time of a start."""


def command_line(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the command line: all of it, or as much as these arguments need."""
    commands = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
        help="""Icetower, the control tower for Apache Iceberg tables: a REST catalog server and its command line.

Start here: `icetower serve` runs a catalog on this machine that keeps everything in `./.icetower`.
Then, in another terminal: `icetower namespace create demo` and `icetower namespace list`.""",
        epilog="Exit status: 0 done, 1 refused or failed (standard error says why), 2 wrong usage or settings.",
    )
    commands.callback()(_icetower)
    commands.add_typer(server.commands)
    if _ALONE.isdisjoint(arguments[:1]):
        from app.cli import maintain, namespaces, past, receipts, tower, views, warehouses
        from app.cli.moving import exports, imports
        from app.cli.tables import commands as tables

        commands.add_typer(warehouses.commands, name="warehouse", rich_help_panel="Catalog")
        commands.add_typer(namespaces.commands, name="namespace", rich_help_panel="Catalog")
        commands.add_typer(tables.commands, name="table", rich_help_panel="Catalog")
        commands.add_typer(views.commands, name="view", rich_help_panel="Catalog")
        commands.add_typer(receipts.commands, name="commit", rich_help_panel="Catalog")
        commands.add_typer(past.dropped, name="dropped", rich_help_panel="Catalog")
        for command in (past.undrop, past.restore, past.diff):
            commands.command(command.__name__, rich_help_panel="Catalog")(command)
        commands.add_typer(imports.commands, name="import", rich_help_panel="Catalog")
        commands.command("export", rich_help_panel="Catalog")(exports.export)
        commands.command("maintain", rich_help_panel="Catalog")(maintain.maintain)
        commands.command("tower", rich_help_panel="Catalog")(tower.show_tower)
    return commands


def _check_text(arguments: Sequence[str]) -> None:
    """Check that arguments are text: others arrive with lone surrogates, which no JSON has."""
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise InvalidSetting(f"Invalid argument {argument!r}: it is not valid UTF-8")


def _open_standard_streams() -> None:
    """Open those that are closed, to nowhere: else the next files would be them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "r" if number == 0 else "w", encoding="utf-8"))


def _print_to_nowhere() -> None:
    """Give up what is still to be printed: it would be tried again at the end of the process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def run() -> None:
    """Run the command line, and exit with its status."""
    _open_standard_streams()
    try:
        _check_text(sys.argv[1:])
        try:
            command_line(sys.argv[1:])(prog_name="icetower")
        finally:
            sys.stdout.flush()  # a failure at the end of the process would be Python's to print
    except InvalidSetting as error:
        print_failure(str(error))
        sys.exit(WRONG_USAGE)
    except CatalogUnreachable as failure:
        print_failure(
            f"{failure}. Is the server running (`icetower serve`)? Another address: --uri or ICETOWER_URI"
        )
        sys.exit(REFUSED)
    except CatalogRefused as refused:
        print_failure(refused.message)
        for line in conflict_lines(refused.conflict or {}):
            remark(line)
        sys.exit(REFUSED)
    except (CallFailed, IcetowerError, SourceFailed) as failure:
        print_failure(str(failure))
        sys.exit(REFUSED)
    except KeyboardInterrupt:
        sys.exit(STOPPED)  # before the command began, or after it
    except OSError as error:
        # Files have names. What is printed goes to none, as where a log of the command's output is on a full disk.
        is_output = error.errno in (errno.ENOSPC, errno.EPIPE) and error.filename is None
        if is_output:
            _print_to_nowhere()
        if is_output and error.errno == errno.EPIPE:
            sys.exit(REFUSED)  # its reader, such as `head`, has seen enough
        lost = (
            f"Standard output cannot be written: {error.strerror}. What the command had done by then is done"
        )
        print_failure(lost if is_output else str(error))
        sys.exit(REFUSED)
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        print_failure(
            f"Nothing was prepared for this ({type(error).__name__}: {error}, at {Path(where.filename).name} "
            f"line {where.lineno}): an answer of another kind of server, or a fault of Icetower"
        )
        sys.exit(REFUSED)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        try:
            print_line(f"icetower {version('icetower')}")
        except PackageNotFoundError:
            print_line("icetower, from a source tree that is not installed")
        raise typer.Exit


def _icetower(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options of the command itself; its help text is above."""
