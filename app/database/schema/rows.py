"""The tables of the database, as `migrations/` makes them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite numbers rows only if the column is INTEGER, and gives ids of deleted rows again without AUTOINCREMENT.
_Id = BigInteger().with_variant(Integer(), "sqlite")
# Names sort by code point on both databases, or a page of a listing would begin at different names.
_Name = Text().with_variant(Text(collation="C"), "postgresql")

warehouses = Table(
    "warehouses",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("name", _Name, nullable=False),
    Column("root_location", Text, nullable=False),
    Column("default_properties", Text, nullable=False),
    Column("override_properties", Text, nullable=False),
    Column("storage", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    # Where its pointers are: in `pointers`, or in the names of files.
    Column("layout", Text, nullable=False, server_default=text("'catalog'")),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

namespaces = Table(
    "namespaces",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("warehouse_id", _Id, ForeignKey("warehouses.id", ondelete="RESTRICT"), nullable=False),
    Column("parent_id", _Id, ForeignKey("namespaces.id", ondelete="RESTRICT"), nullable=True),
    Column("key", _Name, nullable=False),  # all levels, joined by 0x1F
    Column("name", _Name, nullable=False),  # the last level
    Column("properties", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("warehouse_id", "key"),
    Index(None, "parent_id", "name"),
    sqlite_autoincrement=True,
)

pointers = Table(
    "pointers",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("namespace_id", _Id, ForeignKey("namespaces.id", ondelete="RESTRICT"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", _Name, nullable=False),
    Column("uuid", Text, nullable=False),
    Column("metadata_location", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    # 0, or the number of the registration that brought the metadata: files from elsewhere may be replaced.
    # It is negative for what belongs to another catalog and is read-only here.
    Column("registration", BigInteger, nullable=False, server_default=text("0")),
    # 1 while slots are reserved for writers that have lost races: commits ask `landing_queues` before they land.
    Column("reserved", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("namespace_id", "name"),
    CheckConstraint("kind IN ('table', 'view')", name="ck_pointers_kind"),
    Index(None, "namespace_id", "kind", "name"),
    Index(None, "uuid"),
    Index(None, "metadata_location"),
    sqlite_autoincrement=True,
)

# Folders where a table or view keeps files, or has kept them; each in one spelling, with a slash at its end. Rows
# outlive their pointer until its files are deleted.
table_places = Table(
    "table_places",
    metadata,
    Column("pointer_id", _Id, nullable=False),
    Column("place", _Name, nullable=False),
    PrimaryKeyConstraint("pointer_id", "place"),
    Index(None, "place"),
)

# Folders outside a table's own places in which it names files. An empty place: it is not known which, or if any.
foreign_places = Table(
    "foreign_places",
    metadata,
    Column("pointer_id", _Id, nullable=False),
    Column("place", _Name, nullable=False),
    # A new number each time: who has looked at the table takes out only what he has seen.
    Column("noted", BigInteger, nullable=False),
    PrimaryKeyConstraint("pointer_id", "place"),
    Index(None, "place"),
)

# Writers that have lost races for a table, and when each may land: see `app.catalog.slots`.
landing_queues = Table(
    "landing_queues",
    metadata,
    Column("pointer_id", _Id, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("content", Text, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Index(None, "changed_ms"),
)

# When each table's metadata folder was last searched for files that no commit landed.
metadata_sweeps = Table(
    "metadata_sweeps",
    metadata,
    Column("pointer_id", _Id, primary_key=True, autoincrement=False),
    Column("swept_ms", BigInteger, nullable=False),
)

# When the pointers of each warehouse are next written down beside its tables. Ids are never used again.
pointer_exports = Table(
    "pointer_exports",
    metadata,
    Column("warehouse_id", _Id, primary_key=True, autoincrement=False),
    Column("due_ms", BigInteger, nullable=False),
)

# No foreign keys: history stays when its pointer is gone.
pointer_history = Table(
    "pointer_history",
    metadata,
    Column("sequence", _Id, primary_key=True, autoincrement=True),
    Column("pointer_id", _Id, nullable=False),
    Column("warehouse_id", _Id, nullable=False),
    Column("namespace_key", _Name, nullable=False),
    Column("name", _Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("previous_location", Text, nullable=True),
    Column("location", Text, nullable=True),
    Column("uuid", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("author", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("job", Text, nullable=True),  # of upkeep, if one did it
    Index(None, "pointer_id", "sequence"),
    Index(None, "pointer_id", "at_ms", "sequence"),  # what a pointer was at a time
    Index(None, "uuid"),
    Index(None, "at_ms"),
    sqlite_autoincrement=True,
)

# Which name each table and view had, and when: a row for each stretch of time, without an end if it has it still.
# Times are those of the events in `pointer_history`. A commit adds nothing here.
pointer_names = Table(
    "pointer_names",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("pointer_id", _Id, nullable=False),
    Column("warehouse_id", _Id, nullable=False),
    Column("namespace_key", _Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", _Name, nullable=False),
    Column("from_ms", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=True),
    # All columns of a listing: neither database has to read the rows.
    Index("ix_pointer_names_listing", "warehouse_id", "namespace_key", "kind", "name", "from_ms", "until_ms"),
    Index(None, "pointer_id"),
    Index(None, "until_ms"),
    sqlite_autoincrement=True,
)

# How each namespace was, and when.
namespace_versions = Table(
    "namespace_versions",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("warehouse_id", _Id, nullable=False),
    Column("parent_key", _Name, nullable=False),  # empty for the outermost ones
    Column("name", _Name, nullable=False),  # the last level
    Column("properties", Text, nullable=False),
    Column("from_ms", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=True),
    Index("ix_namespace_versions_listing", "warehouse_id", "parent_key", "name", "from_ms", "until_ms"),
    Index(None, "until_ms"),
    sqlite_autoincrement=True,
)

# Tables, views and namespaces that were dropped and can come back.
dropped = Table(
    "dropped",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("warehouse_id", _Id, nullable=False),
    Column("kind", Text, nullable=False),
    Column("namespace_key", _Name, nullable=False),  # of a namespace: its own
    Column("name", _Name, nullable=False),  # empty for a namespace
    # The row of `pointers` as it was; null for a namespace.
    Column("pointer_id", _Id, nullable=True),
    Column("uuid", Text, nullable=True),
    Column("metadata_location", Text, nullable=True),
    Column("registration", BigInteger, nullable=True),
    Column("properties", Text, nullable=True),  # of a namespace
    Column("created_ms", BigInteger, nullable=False),
    Column("dropped_ms", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    Column("principal", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    # 1 if its files are deleted when its time is over.
    Column("purge", Integer, nullable=False),
    CheckConstraint("kind IN ('table', 'view', 'namespace')", name="ck_dropped_kind"),
    UniqueConstraint("pointer_id"),
    Index(None, "warehouse_id", "namespace_key", "name"),
    Index(None, "warehouse_id", "id"),
    Index(None, "until_ms"),
    Index(None, "uuid"),
    Index(None, "metadata_location"),
    sqlite_autoincrement=True,
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("principal", _Name, nullable=False),
    Column("key", _Name, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("result", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("commit_id", Text, nullable=False, server_default=text("''")),  # of the request that was answered
    PrimaryKeyConstraint("principal", "key"),
    Index(None, "expires_ms"),
)

# What became of each request that changes something. The commit id begins with its time, so rows come in order.
receipts = Table(
    "receipts",
    metadata,
    Column("commit_id", _Name, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("warehouse", Text, nullable=False),
    Column("principal", _Name, nullable=False),
    Column("request_id", _Name, nullable=True),  # if the client sent one
    Column("key", _Name, nullable=True),  # the Idempotency-Key
    Column("began_ms", BigInteger, nullable=False),
    Column("noted_ms", BigInteger, nullable=False),
    Column("facts", Text, nullable=False),
    Column("job", _Name, nullable=True),  # of upkeep, if one did it
    PrimaryKeyConstraint("commit_id"),
    CheckConstraint(
        "outcome IN ('landed', 'unchanged', 'failed', 'in-progress', 'unknown')", name="ck_receipts_outcome"
    ),
    # One tree less to write to in each commit.
    sqlite_with_rowid=False,
)

file_deletions = Table(
    "file_deletions",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("warehouse_id", _Id, ForeignKey("warehouses.id", ondelete="RESTRICT"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("uuid", Text, nullable=False),
    Column("metadata_location", Text, nullable=False),
    Column("identifier", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("not_before_ms", BigInteger, nullable=False),
    Column("leased_until_ms", BigInteger, nullable=False),
    Column("last_error", Text, nullable=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("finished_ms", BigInteger, nullable=True),
    Column("pointer_id", _Id, nullable=True),
    # What an expiry took out, the report of marked orphans, or where a purged table was.
    Column("expired", Text, nullable=True),
    # From here on files may be gone.
    Column("begun_ms", BigInteger, nullable=True),
    # How often it was leased: a worker that is not the last one any more may change nothing.
    Column("leases", Integer, nullable=False, server_default=text("0")),
    # How often in a row nothing at all was found where the files of a purged table should be.
    Column("empty_looks", Integer, nullable=False, server_default=text("0")),
    CheckConstraint("kind IN ('purge', 'expire', 'orphans')", name="ck_file_deletions_kind"),
    CheckConstraint("state IN ('queued', 'done', 'failed', 'kept')", name="ck_file_deletions_state"),
    Index(None, "state", "warehouse_id", "not_before_ms"),
    Index(None, "warehouse_id"),
    Index(None, "uuid"),
    Index(None, "pointer_id"),
    Index(None, "finished_ms"),
    sqlite_autoincrement=True,
)

# No foreign key: what was done to a table is kept for a while after the table has gone.
maintenance_jobs = Table(
    "maintenance_jobs",
    metadata,
    Column("sequence", _Id, primary_key=True, autoincrement=True),
    Column("id", _Name, nullable=False),
    Column("pointer_id", _Id, nullable=False),
    Column("job", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("began_ms", BigInteger, nullable=False),
    Column("leased_until_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger, nullable=True),
    Column("outcome", Text, nullable=False),
    UniqueConstraint("id"),
    Index(None, "pointer_id", "sequence"),
    Index(None, "began_ms"),
    sqlite_autoincrement=True,
)

# Files that were marked as orphans, a few hundred in a row; what was done is counted, and its list is emptied.
orphan_batches = Table(
    "orphan_batches",
    metadata,
    Column("deletion_id", _Id, nullable=False),
    Column("number", Integer, nullable=False),
    Column("files", Text, nullable=False),
    Column("marked_files", Integer, nullable=False),
    Column("marked_bytes", BigInteger, nullable=False),
    # Null until the batch is done.
    Column("deleted_files", Integer, nullable=True),
    Column("deleted_bytes", BigInteger, nullable=True),
    PrimaryKeyConstraint("deletion_id", "number"),
)

# Plans that are made in the background. No foreign key: a dropped table's plans run out by themselves.
scan_plans = Table(
    "scan_plans",
    metadata,
    Column("id", _Name, nullable=False),
    Column("pointer_id", _Id, nullable=False),
    Column("state", Text, nullable=False),
    Column("result", Text, nullable=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("leased_until_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("id"),
    CheckConstraint("state IN ('submitted', 'completed', 'failed', 'cancelled')", name="ck_scan_plans_state"),
    Index(None, "expires_ms"),
)

# The first server that needs a key makes it; all servers on one database sign with it.
signing_keys = Table(
    "signing_keys",
    metadata,
    Column("name", _Name, nullable=False),
    Column("secret", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("name"),
)
