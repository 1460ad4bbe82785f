"""Steps that ask the catalog itself, as anybody can with curl: what was, what would be, what a query has to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pyiceberg.catalog import load_catalog

from examples.flights.narration import Unexpected
from examples.flights.pipeline import Pipeline

TABLE = "nyc/tables/flights"
MARCH_TO_CHICAGO = "month = 3 AND dest = 'ORD'"


def look_at_history(pipeline: Pipeline) -> None:
    """List the snapshots, and what changed between the tag and now."""
    snapshots = _ask(pipeline, "GET", "snapshots")["snapshots"]
    pipeline.narrator.check(
        "snapshots, Spark counts as many", len(snapshots), pipeline.rows("nyc.flights.snapshots")
    )
    diff = _ask(pipeline, "GET", "diff?from=complete_year&to=main")
    come, gone = diff["added"], diff["removed"]
    deleted = gone["rows"] - come["rows"] + come["deletes"] - gone["deletes"]
    expected = pipeline.rows("nyc.flights VERSION AS OF 'complete_year'") - pipeline.rows("nyc.flights")
    pipeline.narrator.check("rows deleted since the tag, by its files", deleted, expected)
    pipeline.narrator.say(
        f"{come['delete-files']} delete files came, in {len(diff['partitions'])} partitions;"
        f" {gone['data-files']} data files went"
    )


def move_a_branch(pipeline: Pipeline) -> None:
    """Make a branch at the tag, bring it to where main is, and drop it: three commits, each with its receipt."""
    _ask(pipeline, "PUT", "refs/rehearsal", {"ref": "complete_year"})
    receipt = _ask(pipeline, "PUT", "refs/rehearsal", {"fast-forward-to": "main"})
    head = pipeline.current_snapshot("nyc.flights")
    pipeline.narrator.check("the branch is where main is, at", receipt["snapshot-id-after"], head)
    _ask(pipeline, "DELETE", "refs/rehearsal")


def rehearse_a_commit(pipeline: Pipeline) -> None:
    """Ask whether commits that were prepared before the deletion would land, before anything is written."""
    base = pipeline.number("SELECT snapshot_id FROM nyc.flights.refs WHERE name = 'complete_year'")
    stale = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": base}],
        "updates": [{"action": "set-properties", "updates": {"audited": "yes"}}],
    }
    verdict = _ask(pipeline, "POST", "validate", stale)
    pipeline.narrator.check(
        "a commit that expects main at the tag would land", verdict["would-commit"], False
    )
    pipeline.narrator.say(verdict["error"]["message"])
    cancelled = {"type": "is-null", "term": "dep_time"}
    for operation, would_conflict in (
        ({"kind": "overwrite", "row-filter": cancelled}, True),
        ({"kind": "append"}, False),
    ):
        report = _ask(pipeline, "POST", "conflicts", {"base-snapshot-id": base, "operation": operation})
        claim = f"an {operation['kind']} made on the tag would conflict"
        pipeline.narrator.check(claim, report["would-conflict"], would_conflict)
        for conflict in report["conflicts"][:1]:
            pipeline.narrator.say(conflict["message"])


def let_the_server_plan(pipeline: Pipeline) -> None:
    """Ask which files a query reads; then let PyIceberg, which has no manifests to read then, count its rows."""
    wanted = {
        "type": "and",
        "left": {"type": "eq", "term": "month", "value": 3},
        "right": {"type": "eq", "term": "dest", "value": "ORD"},
    }
    plan = _ask(pipeline, "POST", "plan", {"filter": wanted, "select": ["distance"]})
    tasks = plan.get("file-scan-tasks", [])
    pipeline.narrator.say(f"{len(tasks)} of {pipeline.files('nyc.flights')} data files are to be read")
    catalog = load_catalog("tower", type="rest", uri=pipeline.uri, **{"scan-planning-mode": "server"})
    rows = catalog.load_table(("nyc", "flights")).scan(MARCH_TO_CHICAGO).to_arrow()
    pipeline.narrator.check(
        "flights to Chicago in March, planned by the server, read by PyIceberg",
        rows.num_rows,
        pipeline.rows(f"nyc.flights WHERE {MARCH_TO_CHICAGO}"),
    )


def _ask(pipeline: Pipeline, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Show a request as a curl command, send it, return its answer."""
    url = f"/v1/namespaces/{TABLE}/{path}"
    content = None if body is None else json.dumps(body)
    options = ("" if method == "GET" else f"-X {method} ") + (
        "" if content is None else f"--json '{content}' "
    )
    pipeline.narrator.command(f'curl {options}"$icetower{url}"')
    headers = {} if body is None else {"Content-Type": "application/json"}
    request = Request(pipeline.uri + url, content.encode() if content else None, headers, method=method)
    try:
        with urlopen(request) as answer:
            found: dict[str, Any] = json.load(answer)
    except HTTPError as error:
        raise Unexpected(f"{method} {url} was answered with {error.read().decode()}") from error
    return found
