"""Clients that append data files by reference, in a process of their own.

Reads its orders as JSON from standard input, and writes what happened as JSON to standard output.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from tests.builders.contending_writers import SWITCH_S
from tests.builders.plain_http import PlainConnection

CONTENT = b"PAR1" + bytes(60)
COLUMNS = list(range(1, 11))


@dataclass
class AppendOrders:
    """What to do."""

    urls: list[str]
    path: str
    location: str
    """Of the table."""
    clients: int
    seconds: float
    files: int
    """In each request."""
    has_metrics: bool
    most: int
    """Begin no further append once so many have begun; their data files are made before the first one."""


@dataclass
class AppendsFound:
    """What happened."""

    waits: list[float] = field(default_factory=list)
    """For each append that landed, how long its answer took."""
    seconds: float = 0.0
    """From the start to the last answer."""
    processor_s: float = 0.0
    errors: list[str] = field(default_factory=list)


def append_all(orders: AppendOrders) -> AppendsFound:
    """Run clients in a process of their own, and return what happened.

    Raises:
        RuntimeError: an append was refused.
    """
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.contention.append_clients"],
        input=json.dumps(asdict(orders)),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode or "Traceback" in process.stderr:
        raise RuntimeError(process.stderr[-3000:])
    found = AppendsFound(**json.loads(process.stdout))
    if found.errors:
        raise RuntimeError("; ".join(found.errors[:3]))
    return found


def _described(orders: AppendOrders, path: str) -> bytes:
    """Return the JSON of a data file."""
    file = {
        "spec-id": 0,
        "partition": [],
        "content": "data",
        "file-path": path,
        "file-format": "parquet",
        "file-size-in-bytes": len(CONTENT),
        "record-count": 1000,
    }
    if orders.has_metrics:
        file |= {
            "column-sizes": {"keys": COLUMNS, "values": [4000] * 10},
            "value-counts": {"keys": COLUMNS, "values": [1000] * 10},
            "null-value-counts": {"keys": COLUMNS, "values": [0] * 10},
            "lower-bounds": {"keys": COLUMNS, "values": ["0100000000000000"] * 10},
            "upper-bounds": {"keys": COLUMNS, "values": ["0700000000000000"] * 10},
            "split-offsets": [4],
        }
    return orjson.dumps({"data-file": file})


def _requests(orders: AppendOrders) -> list[bytes]:
    """Make the data files, and return the body of each request."""
    folder = orders.location.removeprefix("file://") + "/data"
    Path(folder).mkdir(parents=True)
    template = _described(orders, "$PATH")
    bodies = []
    for number in range(orders.most):
        files = []
        for part in range(orders.files):
            name = f"{number:06}-{part:04}.parquet"
            with open(f"{folder}/{name}", "wb") as made:  # noqa: PTH123 - tens of thousands of files
                made.write(CONTENT)
            files.append(template.replace(b"$PATH", f"{orders.location}/data/{name}".encode()))
        bodies.append(b'{"files":[' + b",".join(files) + b"]}")
    return bodies


def main() -> None:
    """Run the clients that standard input orders."""
    orders = AppendOrders(**json.load(sys.stdin))
    sys.setswitchinterval(SWITCH_S)
    bodies = _requests(orders)
    found, turns = AppendsFound(), itertools.count()
    begun_s, used_s = time.monotonic(), time.process_time()

    def work(number: int) -> None:
        http = PlainConnection(orders.urls[number % len(orders.urls)])
        while (now_s := time.monotonic()) < begun_s + orders.seconds and (turn := next(turns)) < len(bodies):
            status, answer = http.request("POST", f"{orders.path}/append", bodies[turn])
            if status != 200:
                found.errors.append(f"{status} {answer[:300].decode(errors='replace')}")
                return
            found.waits.append(time.monotonic() - now_s)
            found.seconds = time.monotonic() - begun_s

    threads = [threading.Thread(target=work, args=(number,)) for number in range(orders.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.processor_s = time.process_time() - used_s
    json.dump(vars(found), sys.stdout)


if __name__ == "__main__":
    main()
