"""A server whose files are as far away as in an object store: `python -m benchmarks.slow_storage SECONDS FOLDER`.

Its warehouse is in `s3://bench`, so the server takes the ways that it takes with an object store. The files are in a
local folder; each call to the store first waits for so many seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import uvicorn

from app.cli.server.http_protocol import protocol_for
from app.engine.model.ids import Location
from app.fileio.files import ListedFile
from app.fileio.local import LocalFiles
from app.fileio.tails import Tail
from app.main import create_app
from app.settings import load_settings
from app.telemetry import configure_logging

ROOT = "s3://bench"


@dataclass(frozen=True, eq=False)
class SlowFiles:
    """Files of a local folder that seem to be in an object store."""

    files: LocalFiles
    folder: str
    latency_s: float

    def read(self, location: Location) -> bytes:
        return self.files.read(self._reached(location))

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        return self.files.read_at_most(self._reached(location), max_bytes)

    def read_tail(self, location: Location, most_bytes: int) -> Tail:
        return self.files.read_tail(self._reached(location), most_bytes)

    def write_new(self, location: Location, content: bytes) -> None:
        self.files.write_new(self._reached(location), content)

    def delete(self, location: Location) -> None:
        self.files.delete(self._reached(location))

    def delete_empty_folder(self, location: Location) -> bool:
        return self.files.delete_empty_folder(self._reached(location))

    def exists(self, location: Location) -> bool:
        return self.files.exists(self._reached(location))

    def find_file(self, location: Location) -> ListedFile | None:
        found = self.files.find_file(self._reached(location))
        return None if found is None else replace(found, location=location)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        for listed in self.files.list_files(self._reached(prefix)):
            where = Location(ROOT + listed.location.removeprefix(self.folder))
            yield replace(listed, location=where)

    def _reached(self, location: Location) -> Location:
        """Wait as long as the store takes, and return where the file really is."""
        time.sleep(self.latency_s)
        return Location(self.folder + location.removeprefix(ROOT))


def main(latency_s: float, folder: str) -> None:
    """Serve as `icetower serve` does with one process."""
    settings = load_settings({}, None).settings
    configure_logging(settings.log_level)
    files = SlowFiles(LocalFiles(), folder, latency_s)
    uvicorn.run(
        create_app(settings, files_of=lambda _warehouse: files),
        host=settings.host,
        port=settings.port,
        http=protocol_for(settings),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.shutdown_grace_seconds,
    )


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2])
