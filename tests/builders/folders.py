"""What is in folders, also while a server deletes some of it."""

from __future__ import annotations

import os
from pathlib import Path


def files_below(folder: Path) -> set[Path]:
    """Return the files in a folder and the folders below it; `rglob` fails when one of them goes meanwhile."""
    return {Path(above, name) for above, _, names in os.walk(folder) for name in names}
