from __future__ import annotations

import gzip
from uuid import uuid4

from app.catalog.context.catalog import Catalog
from app.catalog.exports.export_files import (
    ExportedPointer,
    export_folder,
    export_name,
    header_line,
    last_line,
    pointer_line,
)
from app.catalog.rebuild.planning import Action, plan_rebuild
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from tests.builders.catalogs import START_MS
from tests.builders.tables import DEPARTURES, FLIGHTS, table_in
from tests.unit.catalog.rebuild.rebuilding import WISH, rebuild


def planted(catalog: Catalog, at_ms: int, *pointers: ExportedPointer) -> None:
    """Write an export as one who can write to the warehouse would."""
    folder = export_folder(catalog.warehouse.root_location, catalog.warehouse.name)
    lines = [header_line("wh", catalog.warehouse.root_location, at_ms, 0), *map(pointer_line, pointers)]
    text = "".join([*lines, last_line(0, len(pointers))])
    name = export_name(at_ms, "0" * 8, "0" * 16, "0" * 36)
    catalog.files.write_new(Location(f"{folder}/{name}"), gzip.compress(text.encode()))


def test_planted_export_gives_no_table_another_name(lost: Catalog, found: Catalog) -> None:
    location = table_in(lost).location
    assert location is not None
    evil = TableIdentifier(FLIGHTS, "evil")
    for kind in ("table", "view"):
        planted(found, START_MS, ExportedPointer(kind, evil, TableUuid(str(uuid4())), location))

        items = {item.identifier: item for item in plan_rebuild(found, WISH).items}

        assert items[evil].action is Action.LEAVE
        assert items[evil].reason is not None
        found.files.delete(plan_rebuild(found, WISH).export or location)


def test_planted_export_of_the_future_hides_nothing(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    planted(found, found.server.pointer_exports.now_ms() + 48 * 3_600_000)

    plan = rebuild(found)

    assert plan.export is None
    assert found.find(DEPARTURES) is not None
