"""Where each pointer was at a time, found without walking through its events."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

INDEX = "ix_pointer_history_pointer_id_at_ms_sequence"


def upgrade() -> None:
    op.create_index(INDEX, "pointer_history", ["pointer_id", "at_ms", "sequence"])


def downgrade() -> None:
    op.drop_index(INDEX, table_name="pointer_history")
