"""Commands that tables and views have alike: list, show, rename, register and unregister."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from app.cli.terminal.arguments import identifier_from, namespace_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import NAME_HELP, AsJson, Separator, Uri, Warehouse, group
from app.cli.terminal.output import print_json, print_json_list, print_line, remark
from app.cli.terminal.rendering import print_facts, print_table
from app.client.catalog import RemoteCatalog
from app.client.table.tables import TableCalls
from app.client.views import ViewCalls


@dataclass(frozen=True)
class NamedKind:
    """Tables or views, as far as they differ here."""

    noun: str
    example: str
    shown: str
    """What `show` prints."""
    calls: Callable[[RemoteCatalog], TableCalls | ViewCalls]
    facts: Callable[[str, str | None, Mapping[str, Any]], list[tuple[str, object]]]


def named_group(kind: NamedKind, help_text: str) -> typer.Typer:
    """Return the group of commands about tables or views, with those that both have."""
    commands = group(help_text)
    _add_list(commands, kind)
    _add_show(commands, kind)
    _add_rename(commands, kind)
    _add_register(commands, kind)
    _add_unregister(commands, kind)
    return commands


def _name_of(kind: NamedKind) -> Any:
    return typer.Argument(..., metavar=kind.noun.upper(), help=NAME_HELP)


def _add_list(commands: typer.Typer, kind: NamedKind) -> None:
    noun = kind.noun

    @commands.command(
        "list",
        help=f"""List the {noun}s of a namespace.

        For example:

        - `icetower {noun} list eu.sales`
        - `icetower {noun} list eu.sales --json | jq -r '.[].name'`
        """,
    )
    def list_names(
        namespace: Annotated[
            str, typer.Argument(metavar="NAMESPACE", help="Levels joined by dots, outermost first.")
        ],
        uri: Uri = None,
        warehouse: Warehouse = None,
        separator: Separator = ".",
        as_json: AsJson = False,
    ) -> None:
        within = namespace_from(namespace, separator)
        with connected(uri, warehouse) as catalog:
            found = kind.calls(catalog).list(within)
            if as_json:
                print_json_list(
                    {"namespace": list(item.namespace.levels), "name": item.name} for item in found
                )
            elif not print_table([noun], ([item.name] for item in found)):
                remark(f"No {noun}s in namespace {namespace}.")


def _add_show(commands: typer.Typer, kind: NamedKind) -> None:
    noun, example = kind.noun, kind.example

    @commands.command(
        "show",
        help=f"""Show a {noun}: {kind.shown}.

        For example:

        - `icetower {noun} show {example}`
        - `icetower {noun} show {example} --json`
        """,
    )
    def show(
        name: str = _name_of(kind),
        uri: Uri = None,
        warehouse: Warehouse = None,
        separator: Separator = ".",
        as_json: AsJson = False,
    ) -> None:
        identifier = identifier_from(name, separator)
        with connected(uri, warehouse) as catalog:
            loaded = kind.calls(catalog).load(identifier)
        if as_json:
            print_json({"metadata-location": loaded.metadata_location, "metadata": loaded.metadata})
        else:
            print_facts(kind.facts(name, loaded.metadata_location, loaded.metadata))


def _add_rename(commands: typer.Typer, kind: NamedKind) -> None:
    noun, example = kind.noun, kind.example

    @commands.command(
        "rename",
        help=f"""Give a {noun} another name, in the same namespace or another. No file moves.

        For example:

        - `icetower {noun} rename {example} eu.archive.{example.rpartition(".")[2]}_2025`
        """,
    )
    def rename(
        name: str = _name_of(kind),
        new_name: str = typer.Argument(..., metavar="NEW", help=NAME_HELP),
        uri: Uri = None,
        warehouse: Warehouse = None,
        separator: Separator = ".",
    ) -> None:
        source, destination = identifier_from(name, separator), identifier_from(new_name, separator)
        with connected(uri, warehouse) as catalog:
            kind.calls(catalog).rename(source, destination)
        print_line(f"Renamed {noun} {name} to {new_name}.")


def _add_register(commands: typer.Typer, kind: NamedKind) -> None:
    noun, example = kind.noun, kind.example

    @commands.command(
        "register",
        help=f"""Take a {noun} into the catalog whose metadata file is already there.

        For example:

        - `icetower {noun} register {example} s3://lake/{example.rpartition(".")[2]}/metadata/00007-4f0c.metadata.json`
        """,
    )
    def register(
        name: str = _name_of(kind),
        metadata_location: str = typer.Argument(..., metavar="METADATA", help=f"The {noun}'s metadata file."),
        overwrite: Annotated[
            bool, typer.Option("--overwrite", help="Let the one of this name point there from now on.")
        ] = False,
        uri: Uri = None,
        warehouse: Warehouse = None,
        separator: Separator = ".",
    ) -> None:
        identifier = identifier_from(name, separator)
        with connected(uri, warehouse) as catalog:
            loaded = kind.calls(catalog).register(identifier, metadata_location, overwrite=overwrite)
        print_line(f"Registered {noun} {name} at {loaded.metadata_location}.")


def _add_unregister(commands: typer.Typer, kind: NamedKind) -> None:
    noun, example = kind.noun, kind.example

    @commands.command(
        "unregister",
        help=f"""Take a {noun} out of the catalog, keep all its files, and print where its metadata is.

        For example:

        - `icetower {noun} unregister {example}`
        """,
    )
    def unregister(
        name: str = _name_of(kind),
        unread: Annotated[
            bool, typer.Option("--unread", help="Do so even if its metadata cannot be read.")
        ] = False,
        uri: Uri = None,
        warehouse: Warehouse = None,
        separator: Separator = ".",
        as_json: AsJson = False,
    ) -> None:
        identifier = identifier_from(name, separator)
        with connected(uri, warehouse) as catalog:
            calls = kind.calls(catalog)
            if unread:
                location: str | None = calls.unregister_unread(identifier)
            else:
                location = calls.unregister(identifier).metadata_location
        if as_json:
            print_json({"metadata-location": location})
            return
        print_line(f"Unregistered {noun} {name}. Its metadata {'was' if unread else 'stays'} at {location}.")
