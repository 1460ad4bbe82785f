"""Jobs of upkeep: who works at which table, and what came of it; history and receipts name the job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "maintenance_jobs",
        sa.Column("sequence", ID, autoincrement=True, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("pointer_id", ID, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("began_ms", sa.BigInteger(), nullable=False),
        sa.Column("leased_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_maintenance_jobs"),
        sa.UniqueConstraint("id", name="uq_maintenance_jobs_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_maintenance_jobs_pointer_id_sequence", "maintenance_jobs", ["pointer_id", "sequence"])
    op.create_index("ix_maintenance_jobs_began_ms", "maintenance_jobs", ["began_ms"])
    running = sa.text("state = 'running'")
    op.create_index(
        "uq_maintenance_jobs_running",
        "maintenance_jobs",
        ["pointer_id"],
        unique=True,
        postgresql_where=running,
        sqlite_where=running,
    )
    op.add_column("receipts", sa.Column("job", NAME, nullable=True))
    has_job = sa.text("job IS NOT NULL")
    op.create_index("ix_receipts_job", "receipts", ["job"], postgresql_where=has_job, sqlite_where=has_job)
    op.add_column("pointer_history", sa.Column("job", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("pointer_history", "job")
    op.drop_index("ix_receipts_job", "receipts")
    op.drop_column("receipts", "job")
    op.drop_table("maintenance_jobs")
