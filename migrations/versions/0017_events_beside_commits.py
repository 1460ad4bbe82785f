"""An index of all events of pointers that are no commits: what was set back is found without reading those."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

INDEX = "ix_pointer_history_beside_commits"


def upgrade() -> None:
    where = sa.text("event != 'committed'")
    op.create_index(INDEX, "pointer_history", ["pointer_id"], postgresql_where=where, sqlite_where=where)


def downgrade() -> None:
    op.drop_index(INDEX, table_name="pointer_history")
