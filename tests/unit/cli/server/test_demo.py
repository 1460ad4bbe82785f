"""`icetower demo`: handing over, or saying what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.server import demo
from tests.unit.cli.conftest import Icetower


@pytest.mark.slow
def test_the_demo_is_handed_its_own_arguments(bare: Icetower) -> None:
    explained = bare("demo", "--help")

    assert explained.status == 0
    assert "python -m examples.flights" in explained.out


def test_an_installation_without_the_demo_says_where_it_is(
    bare: Icetower, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "ROOT", folder)

    refused = bare("demo")

    assert (refused.status, refused.out) == (1, "")
    assert "not part of this installation" in refused.err


def test_an_environment_without_its_packages_is_told_which(
    bare: Icetower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "NEEDED", ("json", "no_such_package"))

    refused = bare("demo")

    assert refused.status == 1
    assert refused.err.startswith("Error: The demo needs no_such_package")
