"""Where PyIceberg's tables lie: at the path that people compute, also those that it stages first."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

ROWS = pa.table({"id": [1, 2, 3]})


def test_tables_lie_at_the_folder_of_their_name(icetower_url: str) -> None:
    catalog = load_catalog("t", type="rest", uri=icetower_url)
    catalog.create_namespace("eu")
    made = catalog.create_table("eu.orders", schema=ROWS.schema)
    made.append(ROWS)
    with catalog.create_table_transaction("eu.staged", schema=ROWS.schema) as transaction:
        transaction.append(ROWS)

    staged = catalog.load_table("eu.staged")

    assert made.location().endswith("/eu/orders")
    assert staged.location().endswith("/eu/staged")
    assert staged.scan().to_arrow() == ROWS
    (task,) = staged.scan().plan_files()
    assert task.file.file_path.startswith(f"{staged.location()}/data/")


def test_a_staged_table_whose_folder_is_taken_meanwhile_is_not_created(icetower_url: str) -> None:
    catalog = load_catalog("t", type="rest", uri=icetower_url)
    for namespace in ("eu", "eu.orders"):
        catalog.create_namespace(namespace)
    late = catalog.create_table_transaction("eu.orders.lines", schema=ROWS.schema)
    around = catalog.create_table("eu.orders", schema=ROWS.schema)

    with pytest.raises(CommitFailedException, match="create it anew, and it gets another location"):
        late.commit_transaction()

    again = catalog.create_table("eu.orders.lines", schema=ROWS.schema)
    assert not again.location().startswith(f"{around.location()}/")
    assert Path(urlsplit(again.metadata_location).path).is_file()
