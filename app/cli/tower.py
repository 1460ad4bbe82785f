"""`icetower tower`: the busiest tables, live."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Annotated

import typer

from app.cli.terminal.arguments import identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, Uri, Warehouse
from app.cli.terminal.output import print_json, remark
from app.cli.terminal.rendering import print_facts, print_table, show_live
from app.cli.terminal.texts import moment_text
from app.client.catalog import RemoteCatalog
from app.client.http.failures import AnswerLost, CatalogUnreachable
from app.client.request_parts import JsonObject

COLUMNS: dict[str, Callable[[JsonObject], object]] = {
    "landed /min": lambda table: table.get("landed-last-minute", 0),
    "refused /min": lambda table: table.get("refused-last-minute", 0),
    "queue": lambda table: table.get("queue-length", 0),
    "held": lambda table: table.get("answers-held", 0) + table.get("commits-at-gate", 0),
    "wait": lambda table: f"{table.get('longest-wait-ms', 0) / 1000:.1f}s",
    "slots used": lambda table: f"{table.get('slots-used', 0)}/{table.get('slots-given', 0)}",
    "group": lambda table: table.get("most-together", 0),
    "rebased": lambda table: table.get("rebased", 0),
}
"""The columns after the name, by what they show; on a terminal of 80 there is room for no more."""
_HEADINGS = ("table", *COLUMNS)


def show_tower(
    name: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Show all numbers of this table, once.")
    ] = None,
    most: Annotated[int, typer.Option("--tables", min=1, max=200, help="How many tables.")] = 20,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="How often to ask anew.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once, and end.")] = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show the tables with most commits, and how these fare, until Ctrl+C.

    The numbers are those of the server process that answers. Without a terminal they are shown once. *slots used* is of
    how many that were given; *held* are the answers and commits that wait; *wait* is since when the first writer waits.

    For example:

    - `icetower tower`
    - `icetower tower --tables 5 --once`
    - `icetower tower sales.orders`
    """
    identifier = None if name is None else identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        if identifier is not None:
            _show_table(catalog.tower.table(identifier), as_json=as_json)
        elif as_json:
            print_json(catalog.tower.busiest(most))
        elif once or not sys.stdout.isatty():
            found = _rows(catalog.tower.busiest(most), separator)
            if found:
                print_table(_HEADINGS, found)
            else:
                remark("No commits yet.")
        else:
            # The first look fails like any command. Later the server may go away and come back.
            first = _rows(catalog.tower.busiest(most), separator)
            looks = chain([first], _further_looks(catalog, most, separator))
            show_live(_HEADINGS, lambda: next(looks), every)


def _further_looks(catalog: RemoteCatalog, most: int, separator: str) -> Iterator[list[list[object]]]:
    while True:
        try:
            yield _rows(catalog.tower.busiest(most), separator)
        except (AnswerLost, CatalogUnreachable):
            yield [["no answer", *("" for _ in COLUMNS)]]


def _show_table(found: JsonObject, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    facts: list[tuple[str, object]] = []
    for name, value in found.items():
        if name in {"namespace", "table"}:
            continue
        moment = moment_text(value) if value else "never"
        facts.append((name.removesuffix("-ms"), moment) if name in {"since-ms", "last-ms"} else (name, value))
    print_facts(facts)


def _rows(answer: JsonObject, separator: str) -> list[list[object]]:
    return [
        [
            separator.join([*table["namespace"], table["table"]]),
            *(shown(table) for shown in COLUMNS.values()),
        ]
        for table in answer["tables"]
    ]
