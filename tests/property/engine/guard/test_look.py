"""The guard: what a sound engine writes gives no finding, and a lie gives the one that it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hypothesis import assume, given
from hypothesis import strategies as st

from app.engine.guard.arrivals import arrivals
from app.engine.guard.findings import Report
from app.engine.guard.look import look_at
from app.engine.model.files.manifests import ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.snapshot import Snapshot
from tests.builders.writing_engine import ROOT, Commit, Made, WritingEngine

NAMES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3)


@dataclass
class FreshlyRead:
    """`BudgetedManifests` without a budget that reads every file anew, as a server does that never saw the table."""

    engine: WritingEngine

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        return WritingEngine(files=self.engine.files).source.manifests(snapshot)

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry]:
        return WritingEngine(files=self.engine.files).source.entries(manifest)

    def exists(self, location: Location) -> bool:
        return bool(self.engine.files.exists(location))


class MadeOneByOne(FreshlyRead):
    """The same manifests, whose entries are objects and not columns."""

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry]:
        return list(super().entries(manifest))


def looked_at(engine: WritingEngine, commit: Commit) -> list[Report]:
    """Return what the guard finds, which is the same however the entries are read."""
    of_columns, of_entries = (
        [
            look_at(arrival, commit.after, source, lambda location: location.startswith(f"{ROOT}/"))
            for arrival in arrivals(commit.base, commit.updates, commit.after)
        ]
        for source in (FreshlyRead(engine), MadeOneByOne(engine))
    )
    assert of_columns == of_entries
    return of_columns


@st.composite
def engines(draw: st.DrawFn) -> WritingEngine:
    version = draw(st.integers(1, 3))
    return WritingEngine(version, counts_in_lists=version > 1 or draw(st.booleans()))


def one_commit(draw: st.DrawFn, engine: WritingEngine) -> Commit:
    """Let an engine do something that fits the table as it is."""
    branch = draw(st.sampled_from(["main", "main", "side"]))
    head = engine.head(branch)
    kinds = ["append", "merge", "stage", "quiet"]
    if engine.head() is not None:
        kinds += ["replace"]
    if head is not None:
        kinds += ["delete", "overwrite", "rewrite", "delete"]
        if engine.format_version > 1:
            kinds += ["rows"]
    ancestors = [
        item
        for item in engine.metadata.snapshots
        if item.parent_snapshot_id is None and engine.head() is item
    ]
    if ancestors:
        kinds += ["back"]
    kind = draw(st.sampled_from(kinds))
    if kind in ("append", "merge", "quiet"):
        return engine.append(draw(NAMES), branch=branch, merge=kind == "merge", totals=kind != "quiet")
    if kind == "stage":
        return engine.append(draw(NAMES), branch=None)
    if kind == "replace":
        return engine.replace_table(draw(NAMES))
    if kind == "rewrite":
        return engine.rewrite_manifests(branch=branch)
    if kind == "rows":
        return engine.delete_rows(draw(NAMES), branch=branch)
    if kind == "back":
        return engine.roll_back_and_append(ancestors[0], draw(NAMES))
    paths = [entry.file.file_path for entry in engine.live(head, ManifestContent.DATA)]
    doomed = draw(st.sets(st.sampled_from(paths))) if paths else set()
    return engine.delete(doomed, draw(NAMES) if kind == "overwrite" else (), branch=branch)


@given(engines(), st.data())
def test_what_a_sound_engine_writes_gives_no_finding(engine: WritingEngine, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 6))):
        commit = data.draw(st.composite(one_commit)(engine))

        assert looked_at(engine, commit) == [Report()]


LIES = {
    "a manifest is left out": FindingKind.DROPPED_FILES,
    "a file is left out": FindingKind.DROPPED_FILES,
    "it has no parent": FindingKind.PARENTLESS,
    "it is built on the parent's parent": FindingKind.BYPASSED_HEAD,
    "a total is wrong": FindingKind.SUMMARY_TOTALS,
    "the list is gone": FindingKind.MISSING_FILE,
    "the manifest is gone": FindingKind.MISSING_FILE,
    "a file lies elsewhere": FindingKind.OUTSIDE_LOCATION,
    "a sequence number is too high": FindingKind.SEQUENCE_NUMBERS,
}


@given(engines(), st.data(), st.sampled_from(sorted(LIES)))
def test_one_lie_is_found(engine: WritingEngine, data: st.DataObject, lie: str) -> None:
    """An append on top of a sound history tells one lie, and the finding of its kind says so."""
    for _ in range(data.draw(st.integers(1, 4))):
        data.draw(st.composite(one_commit)(engine))
    head = engine.head()
    assume(head is not None and engine.live(head, ManifestContent.DATA))
    assert head is not None
    inherited = [item for item in engine.manifests(head) if item.content is ManifestContent.DATA]
    with_live_files = [
        item for item in inherited if any(entry.is_live for entry in engine.source.entries(item))
    ]
    position = data.draw(st.integers(0, len(with_live_files) - 1))
    key = data.draw(st.sampled_from(["total-data-files", "total-delete-files", "total-records"]))
    grandparent = head.parent_snapshot_id

    def falsify(made: Made) -> None:
        if lie == "a manifest is left out":
            path = with_live_files[position].manifest_path
            made.manifests = [item for item in made.manifests if item.manifest_path != path]
        elif lie == "a file is left out":
            merged = made.manifests[0]
            entries = [entry for entry in engine.source.entries(merged) if entry.is_live]
            made.manifests[0] = replace(
                engine._manifest(made.snapshot_id, entries[:-1]), sequence_number=merged.sequence_number
            )
        elif lie == "it has no parent":
            made.parent_id = None
        elif lie == "it is built on the parent's parent":
            made.parent_id = grandparent
        elif lie == "a total is wrong":
            made.summary[key] = str(int(made.summary[key]) + 1)
        elif lie == "a sequence number is too high":
            number = data.draw(st.integers(0, len(made.manifests) - 1))
            manifest = made.manifests[number]
            made.manifests[number] = replace(manifest, sequence_number=manifest.sequence_number + 99)

    assume(lie != "it is built on the parent's parent" or grandparent in engine.metadata.snapshots_by_id)
    assume(lie != "a sequence number is too high" or engine.format_version > 1)
    assume(lie != "a total is wrong" or key in (head.summary or {}))
    elsewhere = ["memory://wh/elsewhere/x.parquet"] if lie == "a file lies elsewhere" else []
    merge = lie == "a file is left out"
    before = set(engine.files._files)
    commit = engine.append(["a", *elsewhere], merge=merge, falsify=falsify)
    new = set(engine.files._files) - before
    if lie == "the list is gone":
        assert commit.snapshot.manifest_list is not None
        engine.files.delete(commit.snapshot.manifest_list)
    elif lie == "the manifest is gone":
        (manifest,) = (path for path in new if "-m" in path)
        engine.files.delete(manifest)

    (report,) = looked_at(engine, commit)

    assert LIES[lie] in {finding.kind for finding in report.findings}
