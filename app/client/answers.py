"""What the server answers, as values."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from app.client.request_parts import JsonObject, given
from app.engine.model.document import kebab
from app.engine.model.identifiers import Namespace, TableIdentifier


class ServerAnswer(BaseModel):
    """Parent of all answers; unknown fields, which a newer server may send, are ignored."""

    model_config = ConfigDict(frozen=True, alias_generator=kebab)

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Return an answer from its JSON; raises pydantic's `ValidationError`."""
        return cls.model_validate_json(content)


class OpenAnswer(ServerAnswer):
    """Parent of answers that keep unknown fields, because they are shown whole."""

    model_config = ConfigDict(extra="allow")


class CatalogConfig(ServerAnswer):
    """What the server says about itself and wants its clients to use."""

    defaults: dict[str, str | None]
    overrides: dict[str, str | None]
    endpoints: list[str] | None = None
    idempotency_key_lifetime: str | None = None

    def merged(self, properties: dict[str, str]) -> dict[str, str]:
        """Return what is in force: defaults, under the client's own properties, under overrides."""
        return given({**self.defaults, **properties, **self.overrides})


class PageAnswer(ServerAnswer):
    """One page of a listing."""

    next_page_token: str | None = None


class TableHealthPage(PageAnswer):
    """One page of the health of a warehouse's tables."""

    tables: list[JsonObject]
    waiting_deletions: list[JsonObject] = []
    """On the first page."""


class ReceiptsAnswer(ServerAnswer):
    """Receipts of requests."""

    commits: list[JsonObject]


class NamespacePage(PageAnswer):
    """One page of a list of namespaces."""

    namespaces: list[list[str]]

    def items(self) -> list[Namespace]:
        return [Namespace(tuple(levels)) for levels in self.namespaces]


class NamedBody(ServerAnswer):
    """The name of a table or view, as the protocol writes it."""

    namespace: list[str]
    name: str


class IdentifierPage(PageAnswer):
    """One page of a list of tables or views."""

    identifiers: list[NamedBody]

    def items(self) -> list[TableIdentifier]:
        return [TableIdentifier(Namespace(tuple(found.namespace)), found.name) for found in self.identifiers]


class NamespaceAnswer(ServerAnswer):
    """A namespace with its properties."""

    namespace: list[str]
    properties: dict[str, str] | None = None


class PropertiesAnswer(ServerAnswer):
    """What an update of properties did to each key."""

    updated: list[str]
    removed: list[str]
    missing: list[str] | None = None


class LoadedAnswer(ServerAnswer):
    """Parent of tables and views as a server knows them."""

    metadata: JsonObject
    """As it was sent; nothing in it has been looked at."""
    config: dict[str, str] = Field(default_factory=dict)

    def property(self, key: str) -> object:
        """Return the value of a property; None if there is none."""
        properties = self.metadata.get("properties")
        return properties.get(key) if isinstance(properties, dict) else None

    @cached_property
    def earlier_locations(self) -> frozenset[str]:
        """The metadata files that came before this one, as far as its log goes."""
        log = self.metadata.get("metadata-log")
        entries = [entry for entry in log if isinstance(entry, dict)] if isinstance(log, list) else []
        return frozenset(str(entry.get("metadata-file")) for entry in entries)


class TableAnswer(LoadedAnswer):
    """A table as the server knows it; one that is only staged has no location yet."""

    metadata_location: str | None = None


class ViewAnswer(LoadedAnswer):
    """A view as the server knows it."""

    metadata_location: str


class FileCount(ServerAnswer):
    """How many files of a kind, and their size where it is known."""

    count: int
    size_bytes: int | None = None


class ExpiredSnapshot(ServerAnswer):
    """A snapshot that was expired, or would be."""

    snapshot_id: int
    timestamp_ms: int


class Unregistered(ServerAnswer):
    """A table or view that was let go without being read."""

    metadata_location: str


class AdoptedTable(ServerAnswer):
    """A file-system table that was adopted."""

    metadata_location: str
    version: int
    later_versions: list[str]
    """What writers have added to its folder since: it is not in the table."""


class ExpiredSnapshots(ServerAnswer):
    """What was expired, or would be."""

    dry_run: bool
    metadata_location: str
    snapshots: list[ExpiredSnapshot]
    refs: list[str]
    partition_spec_ids: list[int]
    schema_ids: list[int]
    files_deleted_after_ms: int | None = None
    as_of_ms: int | None = None
    files: dict[str, FileCount] | None = None
    unreadable: list[str] = Field(default_factory=list)
    obstacle: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to expire."""
        return not (self.snapshots or self.refs or self.partition_spec_ids or self.schema_ids)


class OrphanFileAnswer(ServerAnswer):
    """A file that nothing reaches."""

    location: str
    size_bytes: int
    modified_ms: int


class OrphanAnswer(ServerAnswer):
    """Which files of a table are orphans, and whether they were marked."""

    dry_run: bool
    older_than_ms: int
    places: list[str]
    listed_files: int
    reached_files: int
    staying_files: dict[str, int]
    orphan_files: int
    orphan_bytes: int
    is_complete: bool
    sample: list[OrphanFileAnswer]
    files_deleted_after_ms: int | None = None


class OrphanRunAnswer(ServerAnswer):
    """What has become of orphans that were marked together."""

    run_id: int
    state: str
    marked_ms: int
    files_deleted_after_ms: int
    marked_files: int
    marked_bytes: int
    deleted_files: int
    deleted_bytes: int
    kept_files: int
    report: OrphanAnswer
    finished_ms: int | None = None
    error: str | None = None


class OrphanRunsAnswer(ServerAnswer):
    """The runs of a table, newest first."""

    runs: list[OrphanRunAnswer]


class RefusalAnswer(ServerAnswer):
    """An error inside an answer."""

    message: str
    type: str
    code: int


class RequirementAnswer(ServerAnswer):
    """Whether a requirement would hold."""

    requirement: JsonObject
    result: str
    expected: Any = None
    found: Any = None
    error: RefusalAnswer | None = None


class UpdateAnswer(ServerAnswer):
    """Whether an update would be applied."""

    action: str
    result: str
    error: RefusalAnswer | None = None


class NewSnapshotAnswer(ServerAnswer):
    """The conflicts of a new snapshot on its branch."""

    snapshot_id: int
    ref: str | None = None
    conflicts: JsonObject | None = None
    error: RefusalAnswer | None = None


class DryRunAnswer(OpenAnswer):
    """What a commit to one table would do."""

    identifier: NamedBody
    would_commit: bool
    error: RefusalAnswer | None = None
    conflict: JsonObject | None = None
    already_committed: bool = False
    changes_table: bool = True
    requirements: list[RequirementAnswer]
    updates: list[UpdateAnswer]
    difference: JsonObject | None = None
    snapshots: list[NewSnapshotAnswer] = Field(default_factory=list)
    guard: list[JsonObject] = Field(default_factory=list)
    rebased: list[JsonObject] = Field(default_factory=list)


class TransactionDryRunAnswer(ServerAnswer):
    """What a commit to several tables would do."""

    would_commit: bool
    error: RefusalAnswer | None = None
    conflict: JsonObject | None = None
    tables: list[DryRunAnswer]


class SnapshotPage(PageAnswer):
    """One page of a list of snapshots."""

    snapshots: list[JsonObject]


class SnapshotFilesPage(PageAnswer):
    """One page of the files of a snapshot."""

    snapshot_id: int
    files: list[JsonObject]


class HistoryPage(PageAnswer):
    """One page of what happened to a table; what was current when is on the first."""

    current: list[JsonObject] = Field(default_factory=list)
    events: list[JsonObject]


class DiffPage(PageAnswer, OpenAnswer):
    """One page of a difference; all but the files is on the first."""

    files: list[JsonObject]


class RefAnswer(OpenAnswer):
    """A branch or tag."""

    name: str
    type: str
    snapshot_id: int


class RefList(ServerAnswer):
    """The branches and tags of a table."""

    refs: list[RefAnswer]


class AppendAnswer(OpenAnswer):
    """What an append has added, and as which snapshot."""

    snapshot_id: int
    sequence_number: int
    branch: str
    metadata_location: str
    added_data_files: int
    added_records: int
    added_files_size: int


class RewrittenGroup(OpenAnswer):
    """Manifests of one content and partition spec that are rewritten together."""

    content: str
    spec_id: int
    manifests: int
    manifest_bytes: int
    files: int
    new_manifests: int


class ManifestRewriteAnswer(OpenAnswer):
    """What a rewrite of manifests did, or would do."""

    dry_run: bool
    branch: str
    metadata_location: str
    snapshot_id: int | None = None
    manifests_created: int
    manifests_replaced: int
    manifests_kept: int
    entries_processed: int
    groups: list[RewrittenGroup]


class DanglingDeletesAnswer(OpenAnswer):
    """The delete files that went because they apply to nothing, or would go."""

    dry_run: bool
    branch: str
    metadata_location: str
    snapshot_id: int | None = None
    removed_delete_files: int
    removed_position_delete_files: int
    removed_dvs: int
    removed_equality_delete_files: int


class PartitionStatisticsAnswer(OpenAnswer):
    """The partition statistics of a snapshot that were written, or would be."""

    dry_run: bool
    metadata_location: str
    snapshot_id: int
    partitions: int
    statistics_path: str | None = None
    file_size_in_bytes: int | None = None


class RefReceipt(OpenAnswer):
    """What a change of a branch or tag did."""

    ref: str
    changed: bool
    snapshot_before: int | None = Field(None, alias="snapshot-id-before")
    snapshot_after: int | None = Field(None, alias="snapshot-id-after")
    location_after: str = Field(alias="metadata-location-after")
    sequence: int | None = None
