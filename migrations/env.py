"""Runs migrations on the connection, and in the transaction, that `app/database/schema/revisions.py` hands over."""

from __future__ import annotations

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, inspect

from app.database.schema import partial_indexes  # noqa: F401 - adds them to the metadata
from app.database.schema.rows import metadata

MIGRATION_LOCK = 0x1CE703E2
"""Any number; of two servers that migrate one Postgres database at once, the second waits for it."""


def run_migrations(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # From Postgres 17 on; first, as it counts already.
        connection.exec_driver_sql(
            "SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'"
        )
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        # Changes by servers of an older build end before; those that begin meanwhile wait, and see the new revision.
        if inspect(connection).has_table("alembic_version"):
            connection.exec_driver_sql("LOCK TABLE alembic_version")
    context.configure(
        connection=connection,
        target_metadata=metadata,
        # The caller's transaction holds all of it; Alembic begins and ends none.
        transactional_ddl=False,
        # SQLite changes a table by copying it.
        render_as_batch=connection.dialect.name == "sqlite",
    )
    # Only now is it certain: another one may have migrated it while this one waited.
    context.config.attributes["found"] = context.get_context().get_current_revision()
    context.run_migrations()


if "connection" not in context.config.attributes:
    raise CommandError("Alembic is not told which database: run `icetower migrate`")
run_migrations(context.config.attributes["connection"])
