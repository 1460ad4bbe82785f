"""The guard against lost updates: when it looks at a commit, and what its findings cause."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from app import telemetry
from app.catalog.commits.files.foreign_files import add_lists, brings_files, folders_to_note, foreign_files
from app.catalog.commits.intentions import Base, D
from app.catalog.commits.plans import Plan
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.catalog.context.places.table_places import places_of
from app.catalog.manifests.budgeted_manifests import BudgetedTableManifests
from app.engine.change.updates import AddSnapshot
from app.engine.guard.arrivals import arrivals
from app.engine.guard.findings import Finding, Report
from app.engine.guard.foreign_files import ForeignFiles
from app.engine.guard.look import look_at
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.settings.guard_settings import (
    GUARD,
    GUARD_IGNORE,
    GuardMode,
    GuardSettings,
    guard_settings,
)
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitRefused, IcetowerError

log = logging.getLogger(__name__)


class CommitGuard:
    """Looks at what one commit brings; its tables and attempts share one budget.

    No database connection is held meanwhile. In a dry run nothing is logged or counted: nothing is committed.

    Attributes:
        findings: what it found.
    """

    def __init__(self, catalog: Catalog, *, is_dry_run: bool = False) -> None:
        self._catalog = catalog
        self._is_dry_run = is_dry_run
        self.findings: list[Finding] = []
        self._manifests: BudgetedTableManifests | None = None
        self._reported: set[Finding] = set()
        self._unseen: set[TableIdentifier] = set()

    def check(self, plan: Plan[M, D]) -> frozenset[str]:
        """Look at the snapshots that a plan brings, and return where they name foreign files.

        That are folders outside the table's own places, as `Advance.foreign` takes them.

        Raises:
            CommitRefused: the guard rejects what it found.
            FilesUnavailable: the guard rejects, and cannot look.
        """
        after, base, updates = plan.metadata, plan.base.metadata, plan.updates
        if not isinstance(after, TableMetadata) or not any(map(brings_files, updates)):
            return frozenset()
        assert base is None or isinstance(base, TableMetadata)
        foreign = foreign_files(base, after, updates)
        if any(isinstance(item, AddSnapshot) for item in updates):
            settings = self._settings(base or after)
            if settings.mode is GuardMode.OFF:
                self._look_if_needed(plan, base, after, foreign)
            else:
                self._check(plan, base, after, settings, foreign)
        return folders_to_note(foreign)

    def _look_if_needed(
        self, plan: Plan[M, D], base: TableMetadata | None, after: TableMetadata, foreign: ForeignFiles
    ) -> None:
        """Find where a commit that is not guarded names foreign files, if that cannot wait.

        It can while no files are being deleted: a deletion that begins later looks at the table. Whether they are, the
        transaction of the first attempt sees.
        """
        add_lists(foreign, plan.updates)
        seen, is_first = plan.base.seen, plan.base.identifier not in self._unseen
        self._unseen.add(plan.base.identifier)
        at_work = self._catalog.server.file_deletions.are_at_work
        if is_first or not at_work(None if seen is None else seen.id):
            foreign.is_unseen = True
            return
        try:
            for arrival in arrivals(base, plan.updates, after):
                look_at(arrival, after, self._budgeted(plan.base, after), lambda _location: True, foreign)
        except Exception as error:  # noqa: BLE001 - an unguarded commit is not refused for what it brings
            foreign.is_known = False
            log.info("could not look at an unguarded commit to %s: %s", plan.base.identifier, error)

    def _settings(self, metadata: TableMetadata) -> GuardSettings:
        """Return the settings of a table before the commit: no commit turns off its own guard.

        The warehouse's override is the strongest, as overrides are for clients: writers of a table may set its
        properties, but not those of the warehouse.
        """
        warehouse = self._catalog.warehouse
        return guard_settings(
            warehouse.override_properties, metadata.properties, warehouse.default_properties
        )

    def _check(
        self,
        plan: Plan[M, D],
        base: TableMetadata | None,
        after: TableMetadata,
        settings: GuardSettings,
        foreign: ForeignFiles,
    ) -> None:
        identifier, findings = plan.base.identifier, list[Finding]()
        is_inside_table = places_of(self._catalog, base, after)
        try:
            for arrival in arrivals(base, plan.updates, after):
                report = look_at(arrival, after, self._budgeted(plan.base, after), is_inside_table, foreign)
                kept = [item for item in report.findings if item.kind not in settings.ignored]
                findings += kept
                self._count(identifier, report, found=bool(kept))
        except IcetowerError as error:
            foreign.is_known = False
            self._count_one("unchecked")
            if settings.mode is GuardMode.REJECT:
                # The same store has to take the metadata file a moment later: waiting for it costs nothing more.
                raise
            log.warning("could not look at a commit to %s: %s", identifier, error)
        except Exception:
            foreign.is_known = False
            # A mistake of ours must not stand between writers and their tables, whatever the mode.
            self._count_one("unchecked")
            log.exception("the guard met something unexpected in a commit to %s", identifier)
        self._report(identifier, findings, settings)

    def _budgeted(self, base: Base[M], after: TableMetadata) -> BudgetedTableManifests:
        if self._manifests is None:
            self._manifests = BudgetedTableManifests(self._catalog, self._catalog.rules.guard_read_bytes)
        before = base.metadata
        return self._manifests.of(before if isinstance(before, TableMetadata) else after, base.staged)

    def _count(self, identifier: TableIdentifier, report: Report, *, found: bool) -> None:
        if report.unchecked:
            log.info(
                "not everything in snapshot %s of %s was looked at, %d things in all: %s",
                report.unchecked[0].snapshot_id,
                identifier,
                len(report.unchecked),
                report.unchecked[0].reason,
            )
        self._count_one("found" if found else "unchecked" if report.unchecked else "clean")

    def _count_one(self, outcome: str) -> None:
        if not self._is_dry_run:
            telemetry.GUARDED_SNAPSHOTS.labels(outcome=outcome).inc()

    def _report(
        self, identifier: TableIdentifier, findings: Sequence[Finding], settings: GuardSettings
    ) -> None:
        outcome = "rejected" if settings.mode is GuardMode.REJECT else "warned"
        for finding in findings:
            if finding in self._reported:  # by an attempt that lost its race
                continue
            self._reported.add(finding)
            self.findings.append(finding)
            if self._is_dry_run:
                continue
            telemetry.GUARD_FINDINGS.labels(kind=finding.kind.value, outcome=outcome).inc()
            fields = {
                "warehouse": self._catalog.warehouse.name,
                "table": str(identifier),
                "kind": finding.kind.value,
                "outcome": outcome,
                "snapshot_id": finding.snapshot_id,
                "file": finding.file,
            }
            log.warning("guard, %s: %s", identifier, finding.message, extra={"fields": fields})
        if findings and settings.mode is GuardMode.REJECT:
            raise CommitRefused(_refusal(identifier, findings, self._catalog))


def _refusal(identifier: TableIdentifier, findings: Sequence[Finding], catalog: Catalog) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    where = "table property"
    if GUARD in catalog.warehouse.override_properties:
        where = f"override property of warehouse {catalog.warehouse.name}"
    return (
        f"Guard refuses the commit to {identifier}: {findings[0].message}{more}. Nothing was changed. If this is "
        f"meant, set the {where} {GUARD} to warn or off, or add {findings[0].kind.value} to {GUARD_IGNORE}, in a "
        "change of its own, and commit again"
    )
