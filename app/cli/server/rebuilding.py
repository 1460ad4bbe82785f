"""`icetower rebuild`: names and pointers, made anew from the files of a warehouse."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.places.locations import roots_of
from app.catalog.context.server import Server
from app.catalog.exports.export_files import ExportedWarehouse
from app.catalog.rebuild.carrying_out import RebuildOutcome, carry_out
from app.catalog.rebuild.planning import Action, RebuildItem, RebuildPlan, RebuildWish, plan_rebuild
from app.catalog.rebuild.warehouse_settings import MissingSettings
from app.catalog.warehouses import create_warehouse
from app.cli.server.database_failures import naming_database
from app.cli.terminal.arguments import namespace_from, properties_from
from app.cli.terminal.output import confirm_or_stop, json_text, print_line, remark, warn, warn_of_links
from app.cli.terminal.rendering import print_table
from app.cli.terminal.texts import counted
from app.database.warehouses import Layout, Warehouse
from app.engine.model.ids import Location
from app.errors import InvalidSetting, NoSuchWarehouse
from app.fileio.links import links_below
from app.formats.metadata.names import is_metadata_file
from app.main import build_server, open_database, prepare
from app.settings import load_settings

_SHOWN = 40
_PLACEHOLDER = "env:ICETOWER_SECRET_..."
_IN_PLACE_OF_DOTS = "type this, with the name of a variable where there are dots"
_CALLER = Caller(principal="icetower rebuild", request_id="")


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """The options of the command."""

    warehouse: str | None
    root: str | None
    storage: list[str]
    export: str | None
    no_export: bool
    likely: bool
    dropped: bool
    namespace: str
    separator: str
    is_dry_run: bool
    yes: bool
    as_json: bool

    def wish(self) -> RebuildWish:
        """Return what they mean."""
        return RebuildWish(
            takes_likely=self.likely,
            takes_dropped=self.dropped,
            export=None if self.export is None else Location(self.export),
            uses_exports=not self.no_export,
            namespace=namespace_from(self.namespace, self.separator),
        )


def run_rebuild(flags: Mapping[str, object], config_file: Path | None, options: RebuildOptions) -> None:
    """Show what a rebuild would do; ask, do it, and show what became of it."""
    settings = load_settings(flags, config_file).settings
    with (
        naming_database(settings.database_url.get_secret_value()),
        closing(open_database(settings)) as database,
    ):
        server = build_server(settings, database)
        prepare(settings, database, server, has_tables=True)
        warehouse, is_new = _warehouse(server, options, settings.default_warehouse)
        catalog = Catalog(server, warehouse, _CALLER)
        with ExitStack() as undone:
            if is_new:
                # One that was made for it goes again if nothing is done: its root may be a wrong one.
                undone.callback(server.warehouses.drop, warehouse.name)
            plan = plan_rebuild(catalog, options.wish())
            warn_of_links(link for root in roots_of(catalog) for link in links_below(root, is_metadata_file))
            changes = plan.of(Action.ADD, Action.ADVANCE)
            is_over = options.is_dry_run or not plan.has_changes
            if not options.as_json:
                _show(plan, warehouse)
            elif is_over:
                _print_lines(_document(item) for item in plan.items)
                _print_lines(_further_documents(plan, warehouse))
            if is_over:
                _sum_up(plan, (), options)
                if (plan.found.files or plan.export) and not options.is_dry_run:
                    undone.pop_all()  # What was only shown can be done there.
                return
            if not options.yes:
                confirm_or_stop(f"Make {counted(len(changes), 'pointer')} in warehouse {warehouse.name}?")
            undone.pop_all()
        outcomes = []
        for outcome in carry_out(catalog, plan):
            outcomes.append(outcome)
            if options.as_json:
                _print_lines([_document(outcome.item) | _result(outcome)])
            elif outcome.failure is not None:
                warn(f"{outcome.item.identifier}: {outcome.failure}")
        if options.as_json:
            _print_lines(_document(item) for item in plan.of(Action.KEEP, Action.LEAVE))
            _print_lines(_further_documents(plan, warehouse))
        _sum_up(plan, outcomes, options)
        if any(outcome.failure for outcome in outcomes):
            raise typer.Exit(1)


def _warehouse(server: Server, options: RebuildOptions, default: str) -> tuple[Warehouse, bool]:
    """Return the warehouse, and whether it was made just now."""
    if options.warehouse == "":
        raise InvalidSetting("Invalid --warehouse: it is empty; leave it out for the default one")
    name, storage = options.warehouse or default, properties_from(options.storage)
    found = server.warehouses.find(name)
    root = options.root
    if root is not None and root.startswith("/"):
        root = f"file://{root}"
    if found is None:
        if root is None:
            raise NoSuchWarehouse(f"{name}: give its root location with --root, and it is created")
        made = create_warehouse(server, _CALLER, name, root, {}, {}, storage, has_tables=True)
        return made, True
    if root is not None and root.rstrip("/") != found.root_location.rstrip("/"):
        raise InvalidSetting(
            f"Warehouse {name} is there already, at {found.root_location}, and not at {root}"
        )
    # Only names are said: values may be secret.
    others = sorted(setting for setting, value in storage.items() if found.storage.get(setting) != value)
    if others:
        warn(
            f"Warehouse {name} is there already and keeps its storage settings: --storage has no effect on "
            f"{', '.join(others)}. icetower warehouse update changes them"
        )
    return found, False


def _show(plan: RebuildPlan, warehouse: Warehouse) -> None:
    found = plan.found
    print_line(
        f"{counted(found.files, 'metadata file')} in {counted(found.folders, 'folder')} of warehouse {warehouse.name}; "
        + (f"names from {plan.export}" if plan.export else "no export of names is used")
    )
    shown = [item for item in plan.items if item.action is not Action.KEEP or item.reason]
    if shown:
        columns = ["action", "kind", "name", "named by", "evidence", "remark"]
        print_table(columns, map(_row, shown[:_SHOWN]))
    if len(shown) > _SHOWN:
        remark(f"… and {len(shown) - _SHOWN} more; --dry-run --json shows all")
    for item in shown[:_SHOWN]:
        if item.action is Action.LEAVE and item.others:
            candidates = [*([item.location] if item.location else []), *item.others]
            remark(f"{item.identifier} may be at {', or at '.join(candidates)}")
    for unreadable in found.unreadable[:_SHOWN]:
        warn(f"{unreadable.location} cannot be read: {unreadable.reason[:300]}")

    if plan.drops:
        print_line(
            f"{counted(len(plan.drops), 'thing')} that can come back, as `icetower dropped list` will show."
        )
    if plan.waiting_purges:
        print_line(
            f"{counted(plan.waiting_purges, 'purge')} of dropped tables that waited: called off, as the tables may "
            "have come back after a backup was made. Their files stay; `icetower dropped purge` deletes them."
        )
    for kind, properties in (("default", plan.settings.defaults), ("override", plan.settings.overrides)):
        for name, value in sorted(properties.items()):
            print_line(f"{kind} property of the warehouse: {name}={value}")
    command = _settings_command(warehouse.name, plan.settings)
    if command is not None:
        remark(
            "The warehouse had other settings for clients and storage, or secrets. If they are right, "
            f"{_IN_PLACE_OF_DOTS}:"
        )
        remark(f"  {command}")
    if plan.warehouses:
        remark(f"The server had other warehouses. If they are to come back, {_IN_PLACE_OF_DOTS}:")
    for other in plan.warehouses:
        remark(f"  {_create_command(other)}")


def _row(item: RebuildItem) -> list[object]:
    return [item.action, item.kind, str(item.identifier), item.named_by, item.evidence, item.reason]


def _sum_up(plan: RebuildPlan, outcomes: Sequence[RebuildOutcome], options: RebuildOptions) -> None:
    counts = Counter(item.action for item in plan.items)
    done = sum(outcome.failure is None for outcome in outcomes)
    if options.as_json:
        summary: dict[str, Any] = {str(action): counts[action] for action in Action}
        summary |= {"done": done, "failed": len(outcomes) - done, "namespaces": len(plan.namespaces)}
        summary |= {"dropped": len(plan.drops), "purges-called-off": plan.waiting_purges}
        summary |= {
            "files": plan.found.files,
            "unreadable": len(plan.found.unreadable),
            "export": plan.export,
        }
        _print_lines(
            {"unreadable": unreadable.location, "reason": unreadable.reason}
            for unreadable in plan.found.unreadable
        )
        _print_lines([{"summary": summary}])
        return
    would = "Would make" if options.is_dry_run else "Made"
    number = counts[Action.ADD] + counts[Action.ADVANCE] if options.is_dry_run else done
    left = f"; {counts[Action.LEAVE]} left, for the reasons above" if counts[Action.LEAVE] else ""
    print_line(f"{would} {counted(number, 'pointer')}; {counts[Action.KEEP]} were as they should be{left}.")


def _document(item: RebuildItem) -> dict[str, Any]:
    document = {
        "action": item.action,
        "kind": item.kind,
        "namespace": list(item.identifier.namespace.levels),
        "name": item.identifier.name,
        "uuid": item.uuid,
        "named-by": item.named_by,
        "metadata-location": item.location,
        "previous-metadata-location": item.seen,
        "evidence": item.evidence,
        "reason": item.reason,
        "others": list(item.others) or None,
    }
    return {key: value for key, value in document.items() if value is not None}


def _further_documents(plan: RebuildPlan, warehouse: Warehouse) -> Iterator[dict[str, Any]]:
    for drop in plan.drops:
        entry = drop.entry
        yield {
            "dropped": entry.kind,
            "namespace": list(entry.namespace.levels),
            "name": entry.name,
            "by": entry.principal,
            "dropped-ms": entry.dropped_ms,
            "until-ms": entry.until_ms,
        }
    settings = plan.settings
    command = _settings_command(warehouse.name, settings)
    if settings or command is not None:
        yield {
            "settings": {
                "default-properties": settings.defaults,
                "override-properties": settings.overrides,
                "properties-not-set": {**settings.defaults_for_clients, **settings.overrides_for_clients},
                "storage-not-set": settings.storage,
                "secrets-not-saved": settings.left_out,
                "command": command,
            }
        }
    for other in plan.warehouses:
        yield {"warehouse": other.name, "command": _create_command(other)}


def _settings_command(name: str, settings: MissingSettings) -> str | None:
    """Return the command that gives a warehouse what a rebuild only shows, if there is such."""
    options = _options("default", settings.defaults_for_clients) + _options(
        "override", settings.overrides_for_clients
    )
    options += _storage_options(settings.storage, settings.left_out)
    return shlex.join(["icetower", "warehouse", "update", *options, "--", name]) if options else None


def _create_command(warehouse: ExportedWarehouse) -> str:
    """Return the command that makes a warehouse as it was, but for its secrets."""
    settings = warehouse.settings
    options = [] if warehouse.layout == Layout.CATALOG else [f"--layout={warehouse.layout}"]
    options += _options("default", settings.defaults) + _options("override", settings.overrides)
    options += _storage_options(settings.storage, settings.left_out)
    names = [warehouse.name, warehouse.root_location]
    # An export may be planted: no name of it is to be read as an option.
    return shlex.join(["icetower", "warehouse", "create", *options, "--", *names])


def _storage_options(storage: Mapping[str, str], secrets: Iterable[str]) -> list[str]:
    return _options("storage", storage) + _options("storage", dict.fromkeys(secrets, _PLACEHOLDER))


def _options(kind: str, settings: Mapping[str, str]) -> list[str]:
    return [f"--{kind}={name}={value}" for name, value in sorted(settings.items())]


def _result(outcome: RebuildOutcome) -> dict[str, Any]:
    return {"done": True} if outcome.failure is None else {"done": False, "failure": outcome.failure}


def _print_lines(documents: Iterable[Mapping[str, Any]]) -> None:
    for document in documents:
        print(json_text(document, indent=None), flush=True)
