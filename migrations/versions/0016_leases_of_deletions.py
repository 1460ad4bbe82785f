"""Deletions know which worker has them, and how often their store was found empty."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

COLUMNS = "leases", "empty_looks"


def upgrade() -> None:
    for name in COLUMNS:
        added = sa.Column(name, sa.Integer(), nullable=False, server_default=sa.text("0"))
        op.add_column("file_deletions", added)


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("file_deletions", name)
