from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import namespaces
from app.catalog.adoptions import adopt_table
from app.catalog.context.catalog import Catalog
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.tree_errors import TreeRefusal
from tests.builders.catalogs import new_warehouse
from tests.builders.commits import commit_table
from tests.builders.file_system import identifier


@pytest.fixture
def adopted(tree: Catalog, tmp_path: Path) -> Path:
    """The folder of `ns.t`, which a warehouse of rows has adopted."""
    beside = new_warehouse(tree.server, "rows", f"file://{tmp_path}/tables")
    namespaces.create_namespace(beside, Namespace(("sales",)), {})
    adopt_table(beside, identifier("sales.t"), Location(f"file://{tmp_path}/tables/ns/t"))
    return tmp_path / "tables" / "ns" / "t"


@pytest.mark.parametrize(
    ("link", "target", "name"),
    [("ns/b", "ns/t", "ns.b"), ("other", "ns", "other.t")],
    ids=["of the table", "of its namespace"],
)
def test_adopted_table_takes_no_commits_by_the_name_of_a_link(
    tree: Catalog, adopted: Path, link: str, target: str, name: str
) -> None:
    """They would be versions that nothing reads."""
    root = adopted.parents[1]
    (root / link).symlink_to(root / target)

    with pytest.raises(TreeRefusal, match="adopted"):
        commit_table(tree, identifier(name), (), [SetProperties(updates={"a": "b"})])

    assert not (adopted / "metadata" / "v2.metadata.json").exists()
