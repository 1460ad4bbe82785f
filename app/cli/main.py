"""The `icetower` command: all its parts, and the exit status and line for each failure."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final

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
_OUTPUT: Final = "standard output"


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


class _Output(io.FileIO):
    """Standard output, whose failures name it."""

    def write(self, content: Any, /) -> int:
        """Write to standard output."""
        try:
            return super().write(content)
        except OSError as error:
            error.filename = _OUTPUT
            raise


def _open_standard_streams() -> None:
    """Open those that are closed, to nowhere: else the next files would be them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "r" if number == 0 else "w", encoding="utf-8"))
    before = sys.stdout
    if before is sys.__stdout__ and isinstance(before, io.TextIOWrapper):
        output = _Output(before.fileno(), "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(
            output if before.write_through else io.BufferedWriter(output),
            encoding=before.encoding,
            # As standard error: a name or dash that an old terminal lacks is no reason to fail.
            errors="backslashreplace" if before.errors == "strict" else before.errors,
            line_buffering=before.line_buffering,
            write_through=before.write_through,
        )


def _print_to_nowhere() -> None:
    """Give up what is still to be printed: it would be tried again at the end of the process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def run() -> None:
    """Run the command line, and exit with its status."""
    _open_standard_streams()
    status = _carry_out(sys.argv[1:])
    try:
        sys.stdout.flush()  # a failure at the end of the process would be Python's to print
    except OSError as error:
        status = status or _failed(error)
        _print_to_nowhere()
    sys.exit(status)


def _carry_out(arguments: list[str]) -> int:
    """Carry a command out, say why it failed if it did, and return its exit status."""
    try:
        _check_text(arguments)
        command_line(arguments)(prog_name="icetower")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else bool(end.code)
    except InvalidSetting as error:
        print_failure(str(error))
        return WRONG_USAGE
    except CatalogUnreachable as failure:
        print_failure(
            f"{failure}. Is the server running (`icetower serve`)? Another address: --uri or ICETOWER_URI"
        )
    except CatalogRefused as refused:
        print_failure(refused.message)
        for line in conflict_lines(refused.conflict or {}):
            remark(line)
    except (CallFailed, IcetowerError, SourceFailed) as failure:
        print_failure(str(failure))
    except KeyboardInterrupt:
        return STOPPED  # before the command began, or after it
    except OSError as error:
        return _failed(error)
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        print_failure(
            f"Nothing was prepared for this ({type(error).__name__}: {error}, at {Path(where.filename).name} "
            f"line {where.lineno}): an answer of another kind of server, or a fault of Icetower"
        )
    return REFUSED


def _failed(error: OSError) -> int:
    """Say what could not be read or written, and return the exit status."""
    if error.filename != _OUTPUT:
        print_failure(str(error))
    elif error.errno != errno.EPIPE:  # else its reader, such as `head`, has seen enough
        print_failure(
            f"Standard output cannot be written: {error.strerror}. What the command had done by then is done"
        )
    return REFUSED


def _print_version(is_asked: bool) -> None:
    if is_asked:
        try:
            print_line(f"icetower {version('icetower')}")
        except PackageNotFoundError:
            print_line("icetower, from a source tree that is not installed")
        raise typer.Exit


def _after_the_command(option: typer.CallbackParam, given: str | None) -> None:
    if given is not None:
        name = option.opts[0]
        raise typer.BadParameter(
            f"it goes after the command, as in `icetower table list sales {name} {given}`", param_hint=name
        )


def _icetower(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    _uri: Annotated[str | None, typer.Option("--uri", callback=_after_the_command, hidden=True)] = None,
    _warehouse: Annotated[
        str | None, typer.Option("--warehouse", callback=_after_the_command, hidden=True)
    ] = None,
) -> None:
    """Take the options of the command itself; its help text is above."""
