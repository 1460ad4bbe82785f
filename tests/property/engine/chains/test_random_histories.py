"""Random histories with losers, deleted files and lying numbers: the true head is found, or it is not claimed to be."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from app.engine.chains.tables import Since, candidates_of, newest_of
from app.engine.chains.verdicts import FoundTable
from app.engine.model.ids import Location, TableUuid


@dataclass
class History:
    """A table's life, and the files that are left of it."""

    kept: int
    """How many files a log names."""
    deletes_old: bool
    files: dict[str, FoundTable] = field(default_factory=dict)
    whole: list[FoundTable] = field(default_factory=list)
    """Each file that the pointer has named, in order."""
    lacking: set[str] = field(default_factory=set)

    @property
    def head(self) -> FoundTable:
        return self.whole[-1]

    def written(self, name: str, base: FoundTable | None, is_append: bool, updated: int) -> FoundTable:
        log = () if base is None else (*base.log, base.place)[-self.kept :]
        sequence = (0 if base is None else base.counters[0]) + is_append
        place = f"t/{name}"
        return FoundTable(place, Location(place), TableUuid("u"), (sequence, 3), updated, log, Location(name))

    def land(self, name: str, is_append: bool, updated: int) -> None:
        file = self.written(name, self.whole[-1] if self.whole else None, is_append, updated)
        self.whole.append(file)
        self.files[file.place] = file
        if self.deletes_old:
            names = {*file.log, file.place}
            for old in self.whole:
                if old.place not in names:
                    self.files.pop(old.place, None)

    def lose(self, name: str, base: int, is_append: bool, updated: int, is_cleaned: bool) -> None:
        """Leave the file of a writer that lost against the commit after `base`."""
        file = self.written(name, self.whole[base], is_append, updated)
        self.files[file.place] = file
        if is_cleaned:
            self.lacking.add(file.place)


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History(draw(st.integers(1, 5)), draw(st.booleans()))
    # Names and times are drawn: they say nothing of the order.
    names = iter(draw(st.lists(st.integers(0, 10**6), min_size=60, max_size=60, unique=True)))
    times = st.integers(0, 100)
    for _ in range(draw(st.integers(1, 20))):
        history.land(str(next(names)), draw(st.booleans()), draw(times))
    for _ in range(draw(st.integers(0, 6)) if len(history.whole) > 1 else 0):
        base = draw(st.integers(0, len(history.whole) - 2))
        history.lose(str(next(names)), base, draw(st.booleans()), draw(times), draw(st.booleans()))
    return history


@given(histories(), st.randoms())
def test_what_is_certain_is_the_true_head(history: History, random: object) -> None:
    files = list(history.files.values())
    random.shuffle(files)  # type: ignore[attr-defined] # hypothesis's own type has no name

    verdict = newest_of(candidates_of(files), history.lacking)

    if verdict.is_certain:
        assert verdict.newest == history.head
    else:
        # Never silently: the true head is the likely one, or among those that are named instead.
        named = {verdict.newest.location if verdict.newest else None, *verdict.others}
        assert history.head.location in named


@given(histories())
def test_files_that_others_name_need_not_be_read(history: History) -> None:
    named = {place for file in history.files.values() for place in file.log}
    unnamed = [file for file in history.files.values() if file.place not in named]

    verdict = newest_of(candidates_of(unnamed), history.lacking)

    assert not verdict.is_certain or verdict.newest == history.head


@given(histories(), st.data())
def test_a_pointer_of_a_backup_goes_to_the_true_head_or_stays_and_never_back(
    history: History, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(history.whole) - 1))
    seen = history.whole[at]

    verdict = newest_of(candidates_of(list(history.files.values()), Since(seen.place)), history.lacking)

    if verdict.is_certain:
        assert verdict.newest == history.head


@given(histories())
def test_without_losers_the_head_is_always_found(history: History) -> None:
    files = [file for file in history.files.values() if file in history.whole]

    verdict = newest_of(candidates_of(files), set())

    assert verdict.is_certain
    assert verdict.newest == history.head
