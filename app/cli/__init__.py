"""The `icetower` command."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    # Locks of files, syncs of folders and links are those of POSIX: without this line an import fails somewhere.
    sys.exit("Icetower runs on Linux and macOS. On Windows, run it inside WSL; clients reach it from there.")
