"""The connections of one process, and the file descriptors it may have."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from app.cli.server.connections import raise_descriptor_limit

_RAISE = """
import resource
from app.cli.server.connections import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
raise_descriptor_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def _raised(soft: int, hard: int) -> tuple[int, int]:
    """Return the limits of a process that began with these."""
    run = subprocess.run(
        [sys.executable, "-c", _RAISE.format(soft=soft, hard=hard)],
        capture_output=True,
        check=True,
        text=True,
    )
    found_soft, found_hard = map(int, run.stdout.split())
    return found_soft, found_hard


@pytest.mark.parametrize(
    ("soft", "hard", "raised"), [(256, 1500, 1500), (256, 256, 256), (1024, 4000, 4000), (3000, 4000, 4000)]
)
def test_more_descriptors_are_asked_for_than_a_shell_allows(soft: int, hard: int, raised: int) -> None:
    assert _raised(soft, hard) == (raised, hard)


def test_on_macos_as_many_are_asked_for_as_it_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [256]

    def set_limit(_kind: int, limits: tuple[int, int]) -> None:
        if limits[0] > 24_576:
            raise ValueError("current limit exceeds maximum limit")
        given.append(limits[0])

    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (given[-1], resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", set_limit)

    raise_descriptor_limit()
    raise_descriptor_limit()

    assert given == [256, 10_240]
