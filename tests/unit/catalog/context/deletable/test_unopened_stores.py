"""Warehouses whose store cannot be opened: they hold up what may lie in them, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from app.database.warehouses import Layout, Warehouse
from app.fileio.files import FileIO
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import new_warehouse
from tests.builders.queues import work_off_one
from tests.unit.catalog.deletions.test_queue import unopened
from tests.unit.catalog.deletions.test_runner import files_of, with_files_to_delete


def test_a_warehouse_of_file_system_tables_that_cannot_be_opened_holds_up_no_other_one(
    tmp_path: Path,
) -> None:
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, "purge")
    tree = new_warehouse(catalog.server, "tree", f"file://{tmp_path}/tree", layout=Layout.HADOOP).warehouse

    def opened(warehouse: Warehouse) -> FileIO:
        return unopened(warehouse) if warehouse.id == tree.id else store

    server = replace(catalog.server, files_of=opened)
    assert work_off_one(server)

    assert files_of(store) == set()
    assert server.file_deletions.counts() == {"done": 1}
