"""What was dropped and can come back, and which names there were at a time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# Each stretch of events under one name becomes a row. It ends where the next stretch begins, or with the drop. If the
# first events of what is there now have been deleted, it had the name of the oldest one that is left since it was made,
# unless that is a rename.
NAMES_OF_HISTORY = """
    INSERT INTO pointer_names (pointer_id, warehouse_id, namespace_key, kind, name, from_ms, until_ms)
    SELECT pointer_id, warehouse_id, namespace_key, kind, name, from_ms, until_ms
    FROM (
        SELECT pointer_id, warehouse_id, namespace_key, kind, name, is_drop, sequence,
               CASE WHEN key_before IS NULL AND event <> 'renamed'
                    THEN COALESCE(
                        (SELECT p.created_ms FROM pointers p
                         WHERE p.id = events.pointer_id AND p.created_ms < events.at_ms),
                        at_ms
                    )
                    ELSE at_ms END AS from_ms,
               LEAD(at_ms) OVER (PARTITION BY pointer_id ORDER BY sequence) AS until_ms
        FROM (
            SELECT h.*,
                   CASE WHEN event IN ('dropped', 'unregistered') THEN 1 ELSE 0 END AS is_drop,
                   LAG(event) OVER (PARTITION BY pointer_id ORDER BY sequence) AS event_before,
                   LAG(namespace_key) OVER (PARTITION BY pointer_id ORDER BY sequence) AS key_before,
                   LAG(name) OVER (PARTITION BY pointer_id ORDER BY sequence) AS name_before
            FROM pointer_history h
        ) AS events
        WHERE key_before IS NULL OR key_before <> namespace_key OR name_before <> name OR is_drop = 1
           OR event_before IN ('dropped', 'unregistered')
    ) AS stretches
    WHERE is_drop = 0
    ORDER BY sequence
"""
# Their history may have been deleted.
NAMES_WITHOUT_HISTORY = """
    INSERT INTO pointer_names (pointer_id, warehouse_id, namespace_key, kind, name, from_ms)
    SELECT p.id, n.warehouse_id, n.key, p.kind, p.name, p.created_ms
    FROM pointers p JOIN namespaces n ON n.id = p.namespace_id
    WHERE NOT EXISTS (SELECT 1 FROM pointer_names h WHERE h.pointer_id = p.id AND h.until_ms IS NULL)
"""
# Of namespaces there was no history: what is there now counts from its creation on.
NAMESPACES = """
    INSERT INTO namespace_versions (warehouse_id, parent_key, name, properties, from_ms)
    SELECT n.warehouse_id, COALESCE(above.key, ''), n.name, n.properties, n.created_ms
    FROM namespaces n LEFT JOIN namespaces above ON above.id = n.parent_id
"""


def upgrade() -> None:
    op.create_table(
        "pointer_names",
        sa.Column("id", ID, nullable=False, autoincrement=True),
        sa.Column("pointer_id", ID, nullable=False),
        sa.Column("warehouse_id", ID, nullable=False),
        sa.Column("namespace_key", NAME, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_pointer_names"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "namespace_versions",
        sa.Column("id", ID, nullable=False, autoincrement=True),
        sa.Column("warehouse_id", ID, nullable=False),
        sa.Column("parent_key", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_namespace_versions"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "dropped",
        sa.Column("id", ID, nullable=False, autoincrement=True),
        sa.Column("warehouse_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("namespace_key", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("pointer_id", ID, nullable=True),
        sa.Column("uuid", sa.Text(), nullable=True),
        sa.Column("metadata_location", sa.Text(), nullable=True),
        sa.Column("registration", sa.BigInteger(), nullable=True),
        sa.Column("properties", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("dropped_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("purge", sa.Integer(), nullable=False),
        sa.CheckConstraint("kind IN ('table', 'view', 'namespace')", name="ck_dropped_kind"),
        sa.PrimaryKeyConstraint("id", name="pk_dropped"),
        sa.UniqueConstraint("pointer_id", name="uq_dropped_pointer_id"),
        sqlite_autoincrement=True,
    )
    op.execute(NAMES_OF_HISTORY)
    op.execute(NAMES_WITHOUT_HISTORY)
    op.execute(NAMESPACES)
    listed = ["name", "from_ms", "until_ms"]
    op.create_index(
        "ix_pointer_names_listing", "pointer_names", ["warehouse_id", "namespace_key", "kind", *listed]
    )
    op.create_index("ix_pointer_names_pointer_id", "pointer_names", ["pointer_id"])
    op.create_index("ix_pointer_names_until_ms", "pointer_names", ["until_ms"])
    op.create_index(
        "ix_namespace_versions_listing", "namespace_versions", ["warehouse_id", "parent_key", *listed]
    )
    op.create_index("ix_namespace_versions_until_ms", "namespace_versions", ["until_ms"])
    op.create_index(
        "ix_dropped_warehouse_id_namespace_key_name", "dropped", ["warehouse_id", "namespace_key", "name"]
    )
    for column in ("until_ms", "uuid", "metadata_location"):
        op.create_index(f"ix_dropped_{column}", "dropped", [column])


def downgrade() -> None:
    op.drop_table("dropped")
    op.drop_table("namespace_versions")
    op.drop_table("pointer_names")
