"""Moving one table or view: checked, registered, looked at again, let go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from app.client.http.failures import CallFailed
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.settings.properties import GC_ENABLED
from app.engine.properties.own_properties import MOVED_TO
from app.errors import IcetowerError
from app.formats.metadata.version_names import version_in
from app.moving.reports import MoveLine, MoveReport, MoveState
from app.moving.sources import Entry, Source, SourceFailed, SourceMoved
from app.moving.targets import Inspection, MoveTarget, Present
from app.moving.terms import Mode, Terms

LET_GO_MEANWHILE: Final = (
    "The source has let it go meanwhile, and not to this run: "
    "if another catalog has taken it, commit to one of them only"
)
_GC_IS_OFF: Final = frozenset({"gc-disabled", "snapshot-table"})
MOST_ROUNDS: Final = 10
"""How often a source that moves on is followed."""


class Mover:
    """Moves entries of one source to one target; safe to use from several threads.

    Each step can be done again: a run that was killed is continued by another one with the same report.
    """

    def __init__(self, source: Source, target: MoveTarget, terms: Terms, report: MoveReport) -> None:
        self._source = source
        self._target = target
        self._terms = terms
        self._report = report

    def move(self, entry: Entry) -> MoveLine:
        """Move an entry, and note in the report what has become of it."""
        try:
            line = self._move(entry)
        except (CallFailed, SourceFailed, IcetowerError) as failure:
            begun = self._report.earlier.get(entry) or self._new_line(entry)
            line = begun.but(state=MoveState.FAILED, mode=self._terms.mode, reason=str(failure))
        if not self._terms.dry_run:
            self._report.write(line)
        return line

    def _new_line(self, entry: Entry) -> MoveLine:
        name = self._terms.choice.name_of(entry.identifier)
        return MoveLine(entry, name, self._terms.mode, MoveState.BEGUN)

    def _move(self, entry: Entry) -> MoveLine:
        line, earlier = self._new_line(entry), self._report.earlier.get(entry)
        location = self._source.find_location(entry)
        if location is None:
            return self._gone(line, earlier)
        if earlier is not None and self._is_true_still(earlier, location, line.target):
            return earlier.but(state=MoveState.KEPT, reason=None)
        line = self._located(line, location)
        seen = self._inspected(line, location)
        line = line.but(uuid=seen.uuid, facts=_worth_noting(seen), gc_was_off=self._gc_was_off(seen, earlier))
        line, replaces = self._judged(line, seen, earlier)
        if line.state is MoveState.REFUSED:
            return line
        if self._terms.dry_run:
            return line.but(state=MoveState.WOULD_MOVE)
        if replaces.is_done and earlier is not None:
            line = line.but(settled_location=earlier.settled_location)
        return self._carry_out(line, replaces)

    def _inspected(self, line: MoveLine, location: str) -> Inspection:
        """Return what the target says of a metadata file.

        Where it reads none, the source says the uuid.
        """
        seen = self._target.inspect(line.target, line.entry.kind, line.location or location)
        if seen.facts or seen.present is None:
            return seen
        uuid = self._source.find_uuid(line.entry)
        return replace(seen, facts={"uuid": uuid}) if uuid else seen

    def _located(self, line: MoveLine, location: str) -> MoveLine:
        return line.but(source_location=location, location=self._terms.paths.apply(location))

    # What speaks against it

    def _judged(
        self, line: MoveLine, seen: Inspection, earlier: MoveLine | None
    ) -> tuple[MoveLine, _Replaces]:
        """Return the line with its findings, and what is registered already."""
        is_ours = seen.present is not None and self._is_ours(line, seen, earlier)
        replaces = self._replaces(line, seen, earlier) if is_ours else _Replaces()
        findings = [item for item in seen.findings if not (is_ours and item.code == "name-taken")]
        allowed = self._terms.allowed
        refused = {
            item.code: item.message
            for item in findings
            if item.is_refused and not (item.can_be_allowed and item.code in allowed)
        }
        if is_ours and self._is_itself(line, seen):
            refused["itself"] = f"{line.target} is the entry itself: source and target are one warehouse"
        if seen.present is not None and not is_ours and not seen.findings:
            refused["name-taken"] = f"{line.target} is there already"
        if replaces.is_diverged:
            refused["diverged"] = (
                f"{line.target} is this table, and both catalogs have committed to it since: it is at {replaces.seen}"
            )
        if self._terms.mode is Mode.ADOPT and self._source.drop_obstacle is not None:
            refused["source-purges"] = self._source.drop_obstacle
        fenced = self._fenced_for(seen)
        if fenced is not None and "fenced" not in allowed:
            refused["fenced"] = (
                f"its property {MOVED_TO} says that it was moved to {fenced}, where others commit to it by now"
            )
        if is_another(self._source, line, line.source_location or ""):
            refused["other-store"] = (
                f"the target finds another table at {line.location} than the source: its storage settings may be those "
                "of another store"
            )
        obstacle = self._target.obstacle_to(line.entry.kind)
        if obstacle is not None and not replaces.is_done:
            refused["views-refused"] = obstacle
        notes = tuple(item.message for item in findings if item.code not in refused)
        line = line.but(codes=tuple(dict.fromkeys(item.code for item in findings)), notes=notes)
        if refused:
            codes = tuple(dict.fromkeys((*line.codes, *refused)))
            line = line.but(state=MoveState.REFUSED, reason="; ".join(refused.values()), codes=codes)
        return line, replaces

    def _fenced_for(self, seen: Inspection) -> str | None:
        """Return the catalog that an entry was fenced for, if it is a third one."""
        moved_to = str(seen.facts.get("moved-to") or "")
        return None if moved_to in {"", self._terms.moved_to, self._source.name} else moved_to

    def _is_itself(self, line: MoveLine, seen: Inspection) -> bool:
        """Say whether the target is the source, perhaps at another address."""
        present = seen.present
        return (
            present is not None
            and present.id is not None
            and self._source.identity(line.entry, line.source_location or "") == present.id
        )

    def _is_ours(self, line: MoveLine, seen: Inspection, earlier: MoveLine | None) -> bool:
        """Say whether what has the name is this very entry, registered before."""
        present = seen.present
        assert present is not None
        if present.kind != line.entry.kind:
            return False
        are_known = bool(seen.uuid and present.uuid)
        if present.uuid == seen.uuid if are_known else present.location == line.location:
            return True
        if earlier is not None and earlier.target == line.target:
            is_where_it_was = present.location == earlier.location
            if present.is_read_only and (is_where_it_was or self._terms.mode is Mode.LOOK_ON):
                return True  # The source may have another table of that name by now.
            # Of another uuid it is another table, which the source has let go: it may be here alone.
            if is_where_it_was and not are_known:
                return present.location in self._earlier_locations(seen) or (
                    not seen.facts and not self._may_have_dropped_it(earlier)
                )
        return seen.uuid is None and self._target.has_been_at(
            line.target, line.entry.kind, line.location or ""
        )

    def _may_have_dropped_it(self, earlier: MoveLine) -> bool:
        """Say whether an earlier run may have dropped an entry at the source.

        Perhaps just before it was killed. What has its name there now would be another one.
        """
        return earlier.mode == Mode.ADOPT and self._source.has_entries

    def _earlier_locations(self, seen: Inspection) -> set[str]:
        """Return the metadata files that came before one, as the target has them."""
        return {self._terms.paths.apply(location) for location in seen.earlier_locations}

    def _replaces(self, line: MoveLine, seen: Inspection, earlier: MoveLine | None) -> _Replaces:
        """Return what has to be done about what is registered already."""
        present = seen.present
        assert present is not None
        is_wanted_so = present.is_read_only == (self._terms.mode is Mode.LOOK_ON)
        if present.location == line.location:
            return _Replaces(present.location, is_done=is_wanted_so and seen.uuid in {None, present.uuid})
        known = self._earlier_locations(seen)
        if earlier is not None and earlier.location is not None:
            known.add(earlier.location)
            if earlier.settled_location is not None and earlier.location != line.location:
                known.add(earlier.settled_location)
        if present.is_read_only or present.location in known:
            return _Replaces(present.location)
        if _has_rested(line, earlier) or self._target.has_been_at(
            line.target, line.entry.kind, line.location or ""
        ):
            return _Replaces(present.location, is_done=True, is_ahead=True)
        return _Replaces(present.location, is_diverged=True)

    # Doing it

    def _carry_out(self, line: MoveLine, replaces: _Replaces) -> MoveLine:
        entry, mode, step = line.entry, self._terms.mode, self._terms.step
        notes: list[str] = [*line.notes, *self._source.warnings]
        self._report.write(line)
        step("begun")
        if mode is Mode.FENCE and not self._source.mark(entry, self._fence(line)):
            notes.append(
                "The source has no way to mark it: nothing but an agreement keeps others from committing there"
            )
        step("marked")
        present, judged = replaces.seen, line.location
        at = line.location if replaces.is_done else None
        for _ in range(MOST_ROUNDS):
            location = self._source.find_location(entry)
            if location is None:
                if at is None:
                    return line.but(state=MoveState.FAILED, reason="the source dropped it meanwhile")
                notes.append(LET_GO_MEANWHILE)
                return line.but(state=MoveState.DONE, notes=tuple(notes))
            line = self._located(line, location)
            if line.location != at:
                if replaces.is_ahead:
                    reason = (
                        f"both catalogs have commits: the source is at {location}, {line.target} at {present}"
                    )
                    return line.but(state=MoveState.FAILED, reason=reason)
                if line.location != judged:
                    line = self._judged_again(line)
                line = self._registered(line, present)
                present = at = judged = line.location
                step("registered")
                continue  # Look at the source again: it may have moved on meanwhile.
            self._check_it_is_there(line)
            if mode is Mode.ADOPT:
                try:
                    dropped = self._drop(line)
                except SourceMoved:
                    continue
                if dropped is None:
                    notes.append(LET_GO_MEANWHILE)
                line = dropped or line
            step("dropped")
            return self._settled(self._with_uuid(line)).but(state=MoveState.DONE, notes=tuple(notes))
        return line.but(
            state=MoveState.FAILED,
            reason=f"the source has moved on {MOST_ROUNDS} times: try again when it rests",
        )

    def _fence(self, line: MoveLine) -> dict[str, str]:
        """Return what a fence sets: where the table is now, and that its files stay."""
        keeps_files = {} if line.gc_was_off is None else {GC_ENABLED: "false"}
        return {MOVED_TO: self._terms.moved_to, **keeps_files}

    def _gc_was_off(self, seen: Inspection, earlier: MoveLine | None) -> bool | None:
        if earlier is not None and earlier.gc_was_off is not None:
            return earlier.gc_was_off
        if self._terms.mode is not Mode.FENCE or "snapshots" not in seen.facts:
            return None  # A view, or nothing is known.
        return any(finding.code in _GC_IS_OFF for finding in seen.findings)

    def _judged_again(self, line: MoveLine) -> MoveLine:
        """Judge the file that the source has moved on to: it may be another table's.

        Raises:
            SourceFailed: something speaks against it.
        """
        assert line.location is not None
        seen = self._inspected(line, line.location)
        judged, _ = self._judged(line.but(uuid=seen.uuid), seen, self._report.earlier.get(line.entry))
        if judged.state is MoveState.REFUSED:
            raise SourceFailed(f"the source has moved on to {line.location}: {judged.reason}")
        return line.but(uuid=seen.uuid, facts=_worth_noting(seen))

    def _registered(self, line: MoveLine, present: str | None) -> MoveLine:
        assert line.location is not None
        # First the note, then the deed: what the report does not name was never registered.
        self._report.write(line)
        read_only = self._terms.mode is Mode.LOOK_ON
        uuid = self._target.register(
            line.target, line.entry.kind, line.location, replaces=present, read_only=read_only
        )
        line = line.but(uuid=line.uuid or uuid, settled_location=line.location)
        self._report.write(line)
        return line

    def _check_it_is_there(self, line: MoveLine) -> None:
        """Look at the target again: what is not there must not be let go at its source.

        Raises:
            SourceFailed: the target does not have it any more.
        """
        if not self._has(line):
            raise SourceFailed(
                f"{line.target} was dropped, renamed or replaced since it was registered: the source keeps its own"
            )

    def _has(self, line: MoveLine) -> bool:
        """Say whether the target has what a line says was registered."""
        present = self._target.find(line.target, line.entry.kind)
        return present is not None and (
            _is_same(present, line)
            or self._target.has_been_at(line.target, line.entry.kind, line.location or "")
        )

    def _drop(self, line: MoveLine) -> MoveLine | None:
        """Drop the entry at the source; register once more if a commit came in between.

        None if the source did not have it any more.
        """
        assert line.source_location is not None
        try:
            dropped_at = self._source.drop(line.entry, line.source_location)
        except SourceMoved:
            raise
        except (CallFailed, SourceFailed) as failure:
            raise SourceFailed(
                f"{failure}. {line.target} is registered by now: until the source has let it go, commits to both undo "
                "each other"
            ) from failure
        if dropped_at is None:
            return None
        if dropped_at == line.source_location:
            return line
        present, line = line.location, self._located(line, dropped_at)
        return self._registered(self._judged_again(line), present)

    def _with_uuid(self, line: MoveLine) -> MoveLine:
        """Give a table a uuid that has none, as those of version 1 may: twins are known by it."""
        is_own = self._terms.mode in {Mode.ADOPT, Mode.FENCE}
        if line.uuid or not line.facts or line.entry.kind != "table" or not is_own:
            return line
        return line.but(uuid=self._target.give_uuid(line.target))

    def _settled(self, line: MoveLine) -> MoveLine:
        """Take back at the target what a fence has set: it is about the source."""
        kind, is_fenced = line.entry.kind, line.gc_was_off is not None
        if kind == "view":
            is_fenced = self._terms.mode is Mode.FENCE or line.facts.get("moved-to") == self._terms.moved_to
        if not is_fenced or self._terms.mode is Mode.LOOK_ON:
            return line
        properties = [MOVED_TO] if line.gc_was_off or kind == "view" else [MOVED_TO, GC_ENABLED]
        return line.but(settled_location=self._target.take_back(line.target, kind, properties))

    # What earlier runs have done

    def _is_true_still(self, earlier: MoveLine, location: str, target: TableIdentifier) -> bool:
        if earlier.state not in {MoveState.DONE, MoveState.KEPT} or earlier.mode != self._terms.mode:
            return False
        if self._terms.mode is Mode.ADOPT or (earlier.source_location, earlier.target) != (location, target):
            return False
        present = self._target.find_readable(target, earlier.entry.kind)
        if present is None or not _is_same(present, earlier):
            return False
        return not is_another(self._source, earlier, location)

    def _gone(self, line: MoveLine, earlier: MoveLine | None) -> MoveLine:
        """Return what has become of an entry that the source does not have any more."""
        if earlier is None or earlier.location is None:
            return line.but(state=MoveState.FAILED, reason=f"{self._source.name} has no such table or view")
        if not self._has(earlier):
            reason = f"the source has dropped it, and it is not registered: its metadata file is {earlier.location}"
            return earlier.but(state=MoveState.FAILED, reason=reason)
        if self._terms.mode in {Mode.LOOK_ON, Mode.FENCE}:
            reason = "the source has dropped it: if that was meant, drop it here too"
            return earlier.but(state=MoveState.FAILED, mode=self._terms.mode, reason=reason)
        if earlier.state in {MoveState.DONE, MoveState.KEPT}:
            return earlier.but(state=MoveState.KEPT, reason=None)
        return self._with_uuid(earlier).but(state=MoveState.DONE, reason=None)


@dataclass(frozen=True, slots=True)
class _Replaces:
    """What is registered under the name of an entry that is moved."""

    seen: str | None = None
    """Where its metadata is; None if nothing has the name."""
    is_done: bool = False
    """Whether it needs no registration: it is there, or has come from there."""
    is_ahead: bool = False
    """Whether it has commits that the source does not have."""
    is_diverged: bool = False
    """Whether both have commits that the other one does not have."""


def _has_rested(line: MoveLine, earlier: MoveLine | None) -> bool:
    """Say whether a source still has the very file of a view that was registered.

    Views have no log of their files: nothing at the target says that it has come from there.
    """
    if earlier is None or earlier.settled_location is None:
        return False
    return line.entry.kind == "view" and earlier.location == line.location


def is_another(source: Source, line: MoveLine, location: str) -> bool:
    """Say whether a source has another table than a line at its very location.

    Names recur in file-system tables: each of them begins with `v1`.
    """
    if version_in(location) is None or not line.uuid:
        return False
    return source.find_uuid(line.entry) not in {None, line.uuid}


def _is_same(present: Present, line: MoveLine) -> bool:
    return present.location == line.location or bool(line.uuid and present.uuid == line.uuid)


def _worth_noting(seen: Inspection) -> dict[str, object]:
    """Return the facts for the report: the log of metadata files would make it large."""
    return {name: value for name, value in seen.facts.items() if name not in {"metadata-log", "uuid"}}
