"""`icetower import folder` against a real server."""

from __future__ import annotations

import os
from pathlib import Path

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.cli.conftest import SCHEMA, Icetower


def test_folders_whose_names_are_no_text_fail_alone(
    icetower: Icetower, namespace: str, catalog: RemoteCatalog
) -> None:
    identifier = TableIdentifier(Namespace((namespace,)), "orders")
    catalog.tables.create(identifier, SCHEMA)
    orders = str(catalog.tables.unregister(identifier).metadata_location)
    tables = Path(orders.partition("/metadata/")[0].removeprefix("file://")).parent
    file = Path(orders.removeprefix("file://"))
    for name in (b"odd\xff", b"n\xfe/t"):
        metadata = Path(os.fsdecode(os.fsencode(tables) + b"/" + name + b"/metadata"))
        metadata.mkdir(parents=True)
        (metadata / file.name).write_bytes(file.read_bytes())
    place = f"file://{tables}"

    would = icetower("import", "folder", place, "--namespace", namespace, "--dry-run")
    done = icetower("import", "folder", place, "--namespace", namespace)

    assert (would.status, done.status) == (1, 1)
    assert would.out.endswith("3 names: 1 would be moved, 2 failed.\n")
    assert done.out == "3 names: 1 moved, 2 failed.\n"
    assert "a name or value in it is not UTF-8" in done.err
    assert catalog.tables.exists(TableIdentifier(Namespace((namespace,)), file.parent.parent.name))
