"""The unit tests mirror app/: one noun, one file name, in every folder."""

from __future__ import annotations

from tests.architecture.source_files import ROOT, python_files, shown


def test_unit_tests_stand_where_their_module_stands() -> None:
    strays = []
    for path in python_files("tests/unit"):
        if not path.name.startswith("test_"):
            continue
        folder = path.parent.relative_to(ROOT / "tests" / "unit")
        noun = path.stem.removeprefix("test_")
        mirrored = ROOT / "app" / folder
        # A module with much to test may have a folder of tests: tests/unit/settings/ for app/settings.py.
        named = (mirrored / f"{noun}.py", mirrored / noun, mirrored.with_suffix(".py"))
        if not any(place.exists() for place in named):
            strays.append(shown(path))

    assert strays == [], "tests/unit/engine/model/test_refs.py is about app/engine/model/refs.py"
