"""First tables: warehouses, namespaces, pointers and their history, idempotency keys, file deletions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "warehouses",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("root_location", sa.Text(), nullable=False),
        sa.Column("default_properties", sa.Text(), nullable=False),
        sa.Column("override_properties", sa.Text(), nullable=False),
        sa.Column("storage", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_warehouses"),
        sa.UniqueConstraint("name", name="uq_warehouses_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "namespaces",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("warehouse_id", ID, nullable=False),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("key", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_namespaces"),
        sa.ForeignKeyConstraint(
            ["warehouse_id"], ["warehouses.id"], name="fk_namespaces_warehouse_id", ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["namespaces.id"], name="fk_namespaces_parent_id", ondelete="RESTRICT"
        ),
        sa.UniqueConstraint("warehouse_id", "key", name="uq_namespaces_warehouse_id_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_namespaces_parent_id_name", "namespaces", ["parent_id", "name"])
    op.create_index(
        "ix_namespaces_outermost",
        "namespaces",
        ["warehouse_id", "name"],
        postgresql_where=sa.text("parent_id IS NULL"),
        sqlite_where=sa.text("parent_id IS NULL"),
    )
    op.create_table(
        "pointers",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("namespace_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("metadata_location", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pointers"),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name="fk_pointers_namespace_id", ondelete="RESTRICT"
        ),
        sa.UniqueConstraint("namespace_id", "name", name="uq_pointers_namespace_id_name"),
        sa.CheckConstraint("kind IN ('table', 'view')", name="ck_pointers_kind"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_pointers_namespace_id_kind_name", "pointers", ["namespace_id", "kind", "name"])
    op.create_index("ix_pointers_uuid", "pointers", ["uuid"])
    op.create_table(
        "pointer_history",
        sa.Column("sequence", ID, autoincrement=True, nullable=False),
        sa.Column("pointer_id", ID, nullable=False),
        sa.Column("warehouse_id", ID, nullable=False),
        sa.Column("namespace_key", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("previous_location", sa.Text(), nullable=True),
        sa.Column("location", sa.Text(), nullable=True),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_pointer_history"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_pointer_history_pointer_id_sequence", "pointer_history", ["pointer_id", "sequence"])
    op.create_index("ix_pointer_history_uuid", "pointer_history", ["uuid"])
    op.create_table(
        "idempotency_keys",
        sa.Column("principal", NAME, nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("principal", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_expires_ms", "idempotency_keys", ["expires_ms"])
    op.create_table(
        "file_deletions",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("warehouse_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("metadata_location", sa.Text(), nullable=False),
        sa.Column("identifier", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before_ms", sa.BigInteger(), nullable=False),
        sa.Column("leased_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_file_deletions"),
        sa.ForeignKeyConstraint(
            ["warehouse_id"], ["warehouses.id"], name="fk_file_deletions_warehouse_id", ondelete="RESTRICT"
        ),
        sa.CheckConstraint("kind IN ('purge')", name="ck_file_deletions_kind"),
        sa.CheckConstraint("state IN ('queued', 'done', 'failed', 'kept')", name="ck_file_deletions_state"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_file_deletions_state_not_before_ms", "file_deletions", ["state", "not_before_ms"])
    op.create_index("ix_file_deletions_warehouse_id", "file_deletions", ["warehouse_id"])


def downgrade() -> None:
    for table in (
        "file_deletions",
        "idempotency_keys",
        "pointer_history",
        "pointers",
        "namespaces",
        "warehouses",
    ):
        op.drop_table(table)
