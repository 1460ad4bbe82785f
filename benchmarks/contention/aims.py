"""What each case is meant to reach, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.contention.cases import Measured, MeasuredAppends, Mode, SetUp

APPENDS = 1000.0
FAIR_SHARES = 3.0
SLOTS_RATIO = 0.8


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim in a few words."""

    text: str
    is_met: bool

    @property
    def shown(self) -> str:
        """The text; bold if it was missed."""
        return self.text if self.is_met else f"**{self.text}**"


def aims_of(found: Measured, baseline: Measured | None, fewer: Measured | None) -> list[Aim]:
    """Return the aims of a case.

    Args:
        found: the case.
        baseline: the same writers with slots off.
        fewer: the same mode with the next smaller number of writers.
    """
    case = found.case
    aims: list[Aim] = []
    ratio = None if baseline is None or not baseline.rate else found.rate / baseline.rate
    if case.mode is Mode.ON:
        aims.append(
            Aim("0 lost", found.gave_up == 0) if case.writers <= 32 else Aim("< 1 % lost", found.lost < 0.01)
        )
        if not case.is_herd:
            if ratio is not None:
                aims.append(Aim(f"≥ {SLOTS_RATIO} ×", ratio >= SLOTS_RATIO))
            if case.writers > 1:
                aims.append(Aim(f"≤ {FAIR_SHARES:.0f} shares", found.shares <= FAIR_SHARES))
    if case.mode is Mode.REBASE:
        aims.append(Aim("no 409", found.attempts == found.begun))
        if not case.is_herd:
            wanted = {0: 5.0, 60: 15.0}.get(case.latency_ms)
            if wanted is not None and case.writers == 32 and ratio is not None:
                aims.append(Aim(f"≥ {wanted:.0f} ×", ratio >= wanted))
            if fewer is not None:
                # What differs by less is the same.
                aims.append(Aim("grows", found.rate >= 0.95 * fewer.rate))
    return aims


def aims_of_appends(found: MeasuredAppends) -> list[Aim]:
    """Return the aims of appends by reference."""
    case = found.case
    if case.clients != 64 or case.files != 1 or case.set_up not in (SetUp.SQLITE_1, SetUp.POSTGRES_2):
        return []
    return [Aim(f"≥ {APPENDS:,.0f}/s", found.rate >= APPENDS)]
