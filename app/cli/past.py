"""`icetower dropped`, `undrop`, `restore` and `diff`: what was, and how it comes back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

import typer

from app.cli.terminal.arguments import identifier_from, namespace_from, server_moment
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, Uri, Warehouse, Yes, group, optional
from app.cli.terminal.output import confirm_or_stop, print_json, print_json_list, print_line, remark
from app.cli.terminal.rendering import print_table
from app.cli.terminal.texts import counted, moment_text
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import Namespace

dropped = group(
    """List what was dropped and can come back, or let it go for good.

How long that is says the warehouse's property `icetower.undrop.keep-ms`: seven days unless set."""
)
NamespaceFlag = Annotated[
    bool, typer.Option("--namespace", help="The name is that of a namespace, not of a table or view.")
]
Id = Annotated[
    int | None, optional("--id", help="Which one, by its id; unless given, the latest of the name.")
]


@dropped.command("list")
def list_dropped(
    uri: Uri = None, warehouse: Warehouse = None, separator: Separator = ".", as_json: AsJson = False
) -> None:
    """List what can come back, latest drop first.

    For example:

    - `icetower dropped list`
    """
    with connected(uri, warehouse) as catalog:
        found = catalog.past.dropped()
        columns = ["id", "kind", "name", "dropped", "by", "until", "then"]
        if as_json:
            print_json_list(found)
        elif not print_table(columns, (_row(entry, separator) for entry in found)):
            remark("Nothing that was dropped can come back.")


def _row(entry: JsonObject, separator: str) -> list[str]:
    return [
        str(entry["id"]),
        entry["kind"],
        _name(entry, separator),
        moment_text(entry["dropped-at-ms"]),
        entry["dropped-by"],
        moment_text(entry["until-ms"]),
        entry["then"],
    ]


@dropped.command("purge")
def purge_dropped(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="What was dropped; or give --id.", show_default=False),
    ] = None,
    dropped_id: Id = None,
    is_namespace: NamespaceFlag = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
) -> None:
    """Forget something for good; the files of a table are deleted.

    For example:

    - `icetower dropped purge eu.sales.orders`
    - `icetower dropped purge --id 12 --yes`
    """
    wanted = _wanted(name, dropped_id, separator, is_namespace=is_namespace)
    with connected(uri, warehouse) as catalog:
        if not yes:
            # Only what is asked about: while the question waits, another one of the name may be dropped.
            levels = wanted.get("namespace")
            of_name = catalog.past.dropped(levels and Namespace(tuple(levels)), wanted.get("name"))
            latest = next((entry for entry in of_name if _is_meant(entry, wanted)), None)
            about = "" if latest is None else f", dropped {moment_text(latest['dropped-at-ms'])}"
            confirm_or_stop(f"Purge {name or f'id {dropped_id}'}{about}? It cannot come back then.")
            wanted = wanted if latest is None else {"id": latest["id"]}
        gone = catalog.past.purge_dropped(wanted)
    print_line(f"Purged {gone['kind']} {_name(gone, separator)}.")


def undrop(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="What was dropped: the latest of this name; or give --id.",
            show_default=False,
        ),
    ] = None,
    dropped_id: Id = None,
    as_name: Annotated[
        str | None,
        optional("--as", metavar="NAME", help="The name under which it comes back; as it was unless given."),
    ] = None,
    create_namespace: Annotated[
        bool, typer.Option("--create-namespace", help="Make its namespace if that is missing.")
    ] = False,
    is_namespace: NamespaceFlag = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Bring back a table, view or namespace that was dropped, as it was.

    For example:

    - `icetower undrop eu.sales.orders`
    - `icetower undrop eu.sales.orders --as eu.sales.orders_of_yesterday`
    - `icetower undrop --id 12`
    - `icetower undrop eu`, `icetower undrop eu.sales --namespace`
    """
    wanted = _wanted(name, dropped_id, separator, is_namespace=is_namespace)
    new: JsonObject = {}
    if as_name is not None and (is_namespace or wanted.keys() == {"namespace"}):
        new = {"namespace": list(namespace_from(as_name, separator).levels)}
    elif as_name is not None:
        identifier = identifier_from(as_name, separator)
        new = {"namespace": list(identifier.namespace.levels), "name": identifier.name}
    with connected(uri, warehouse) as catalog:
        back = catalog.past.undrop(wanted, new, create_namespace=create_namespace)
    if as_json:
        print_json(back)
    else:
        print_line(f"Brought back {back['kind']} {_name(back, separator)}.")


def restore(
    names: Annotated[list[str], typer.Argument(metavar="TABLE", help="The tables, by their names.")],
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="TIME", help="A time, like `2026-11-20T10:00:00Z`, or an age, like `2h`."
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and stop.")] = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Make tables what they were at a time, schema and properties included.

    It is a new commit: nothing of the present is lost.

    For example:

    - `icetower restore eu.sales.orders --at 2026-11-20T10:00:00Z --dry-run`
    - `icetower restore eu.sales.orders eu.sales.lines --at 2026-11-20 --yes`
    """
    tables, at = [identifier_from(name, separator) for name in names], server_moment(at)
    with connected(uri, warehouse) as catalog:
        if dry_run or not yes:
            planned = catalog.past.restore(tables, at, dry_run=True)
            if dry_run and as_json:
                print_json(planned)
                return
            for table in () if as_json else planned["tables"]:
                print_line(_planned(table, separator))
            if dry_run:
                return
            if not any(table["updates"] for table in planned["tables"]):
                if as_json:
                    print_json(planned)
                remark("Nothing is to be restored.")
                return
            confirm_or_stop(f"Restore {counted(len(tables), 'table')}?")
        done = catalog.past.restore(tables, at, dry_run=False)
    if as_json:
        print_json(done)
    else:
        print_line(f"Restored {counted(len(done['tables']), 'table')} to {moment_text(done['at-ms'])}.")


def _planned(table: JsonObject, separator: str) -> str:
    updates = ", ".join(update["action"] for update in table["updates"]) or "it is as it was"
    snapshot = table.get("snapshot-id", "none")
    return f"{_name(table, separator)}: snapshot {snapshot}; {updates}"


def diff(
    before: Annotated[
        str, typer.Argument(metavar="BEFORE", help="A warehouse at a time, `lake@2026-11-20` or `lake@1d`.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="AFTER", help="The same one at a later time, or `lake` for now.")
    ],
    uri: Uri = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show what came, went and changed in a warehouse between two times, and by how many rows.

    For example:

    - `icetower diff lake@2026-11-20T10:00:00Z lake@2026-11-21T10:00:00Z`
    - `icetower diff lake@2026-11-20 lake`, `icetower diff lake@1d lake`
    """
    (warehouse, _, from_), (other, _, to) = before.partition("@"), after.partition("@")
    if not from_ or warehouse != other:
        raise typer.BadParameter("give one warehouse at two times, such as lake@2026-11-20 and lake")
    with connected(uri, warehouse) as catalog:
        pages = catalog.past.diff(server_moment(from_), server_moment(to) if to else None)
        columns = ["change", "kind", "name", "rows before", "rows after", "what"]
        if as_json:
            found: dict[str, list[JsonObject]] = {"namespaces": [], "names": []}
            for page in pages:
                found["namespaces"] += page["namespaces"]
                found["names"] += page["names"]
            print_json(found)
        elif not print_table(columns, chain.from_iterable(_page_rows(page, separator) for page in pages)):
            remark("Nothing is different.")


def _page_rows(page: JsonObject, separator: str) -> Iterator[list[str]]:
    yield from (_namespace_row(each, separator) for each in page["namespaces"])
    yield from (_row_of(each, separator) for each in page["names"])


def _namespace_row(changed: JsonObject, separator: str) -> list[str]:
    kind = "came" if changed["before"] is None else "went" if changed["after"] is None else "changed"
    what = "properties" if kind == "changed" else ""
    return [kind, "namespace", separator.join(changed["namespace"]), "", "", what]


def _row_of(changed: JsonObject, separator: str) -> list[str]:
    before, after = changed.get("before"), changed.get("after")
    shown: JsonObject = after or before or {}
    what = list(changed["changes"])
    kind = "came" if before is None else "went" if after is None else "changed"
    if before and after and _name(before, separator) != _name(after, separator):
        kind = "moved"
        what.insert(0, f"was {_name(before, separator)}")
    if not changed["is-readable"]:
        what.append("metadata is gone")
    return [kind, changed["kind"], _name(shown, separator), _rows(before), _rows(after), ", ".join(what)]


def _rows(side: JsonObject | None) -> str:
    return "" if side is None else str(side.get("rows", "?"))


def _name(entry: JsonObject, separator: str) -> str:
    return separator.join([*entry["namespace"], *([entry["name"]] if "name" in entry else [])])


def _wanted(
    name: str | None, dropped_id: int | None, separator: str, *, is_namespace: bool
) -> dict[str, Any]:
    if (name is None) == (dropped_id is None):
        raise typer.BadParameter("give either a name or --id")
    if name is None:
        return {"id": dropped_id}
    # One level alone can only be a namespace.
    if is_namespace or separator not in name:
        return {"namespace": list(namespace_from(name, separator).levels)}
    identifier = identifier_from(name, separator)
    return {"namespace": list(identifier.namespace.levels), "name": identifier.name}


def _is_meant(entry: JsonObject, wanted: JsonObject) -> bool:
    if "id" in wanted:
        return bool(entry["id"] == wanted["id"])
    return bool(entry["namespace"] == wanted["namespace"] and entry.get("name") == wanted.get("name"))
