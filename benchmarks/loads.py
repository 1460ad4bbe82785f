"""Loading a table, asking whether it changed, and whether it exists, against a bare route with the same bytes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report import Row, rate
from benchmarks.servers import bare_route, icetower, wrk
from benchmarks.tables import append_body, client, make_table

SNAPSHOTS = 20


def measure(folder: Path, postgres_url: str) -> list[Row]:
    """Measure on both databases, with the bare route right before and after."""
    rows: list[Row] = []
    for name, url, aim in (("SQLite", None, 0.5), ("Postgres", postgres_url, 0.4)):
        settings = {} if url is None else {"database_url": url}
        with icetower(folder / f"loads-{name}", **settings) as server:
            http = client(server.url)
            path = make_table(http, "loaded")
            for _ in range(SNAPSHOTS):
                http.post(path, json=append_body(http.get(path).json()["metadata"])).raise_for_status()
            answer = http.get(path, headers={"accept-encoding": "identity"})
            with bare_route(folder / f"bare-{name}", answer.content) as bare:
                target = server.url + path
                before = wrk(bare.url + path)
                loads = wrk(target)
                unchanged = wrk(target, header=f"If-None-Match: {answer.headers['etag']}")
                script = folder / "head.lua"
                script.write_text('wrk.method = "HEAD"\n')
                exists = wrk(target, script=str(script))
                beside = (before + wrk(bare.url + path)) / 2
        what = (
            f"load a table with {SNAPSHOTS} snapshots, {len(answer.content):,} bytes, 16 connections, {name}"
        )
        rows.append(
            Row(what, rate(loads), f"bare route {rate(beside)}", f"{loads / beside:.2f}", f"≥ {aim:.2f}")
        )
        for what, found in (("If-None-Match, answered 304", unchanged), ("exists", exists)):
            rows.append(
                Row(f"{what}, {name}", rate(found), f"load {rate(loads)}", f"{found / loads:.2f}", "≥ 1")
            )
    return rows
