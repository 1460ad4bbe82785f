"""Paths that nothing serves, methods that are not allowed, and percent signs in all the wrong places."""

from __future__ import annotations

import pytest

from tests.bad_input.attacks import (
    DELETE,
    GET,
    HEAD,
    NO_NAMESPACE,
    NO_ROUTE,
    PATCH,
    POST,
    Attack,
    check_refused,
)
from tests.bad_input.victim import Victim

NS = "/v1/namespaces"
JOBS, NO_JOB = f"{NS}/a/tables/v2/maintenance/jobs", "NoSuchJobException"
WAREHOUSES, NO_V1 = "/management/v1/warehouses", "Give clients the address of the server without /v1"
NO_SLASH = "Give clients the address of the server without a slash at its end"
SEE_DOCS = "Routes of the catalog begin with /v1/, and /docs shows all of them"
TOKENS, NO_TOKENS = "/v1/oauth/tokens", "This server gives no tokens: leave 'credential' out, or …"
PREFIXED_TOKENS = "/v1/default/oauth/tokens"
ROUTES = [
    Attack("no route", GET, "/v1/nothing", 404, "No route serves /v1/nothing", NO_ROUTE),
    Attack("the root", GET, "/", 404, f"No route serves /. {SEE_DOCS}", NO_ROUTE),
    Attack("the version alone", GET, "/v1", 404, f"No route serves /v1. {SEE_DOCS}", NO_ROUTE),
    Attack("another version", GET, "/v2/namespaces", 404, "No route serves /v2/namespaces", NO_ROUTE),
    Attack(
        "an address with /v1", GET, "/v1/v1/config", 404, f"No route serves /v1/v1/config. {NO_V1}", NO_ROUTE
    ),
    Attack("the same of the management API", GET, f"/v1{WAREHOUSES}", 404, f"No route …. {NO_V1}", NO_ROUTE),
    Attack("slash at the end", GET, f"{NS}/", 404, f"No route serves {NS}/", NO_ROUTE),
    Attack("two slashes", GET, "//v1/config", 404, f"No route serves //v1/config. {NO_SLASH}", NO_ROUTE),
    Attack("upper case", GET, "/V1/CONFIG", 404, "No route serves /V1/CONFIG", NO_ROUTE),
    Attack("a piece too many", GET, f"{NS}/a/tables/t/x", 404, "No route serves …/t/x", NO_ROUTE),
    Attack("dots up to another route", GET, f"{NS}/../config", 404, "No route …/../config", NO_ROUTE),
    Attack("packed dots up", GET, f"{NS}/%2e%2e/config", 404, "No route …%2e%2e/config", NO_ROUTE),
    Attack("a file of the server", GET, "/docs/../../etc/passwd", 404, "No route …", NO_ROUTE),
    Attack("a packed file of the server", GET, "/docs/%2e%2e%2fetc%2fpasswd", 404, "No route …", NO_ROUTE),
    Attack("a backslash", GET, "/v1\\config", 404, "No route serves /v1\\config", NO_ROUTE),
    Attack("a script in the path", GET, "/<script>alert(1)</script>", 404, "No route …", NO_ROUTE),
    Attack("head of no route", HEAD, "/v1/nothing", 404),
    Attack("any other path", GET, f"/{'x' * 2_000}", 404, "No route serves /xxx…", NO_ROUTE),
    Attack("oauth, which is not served", GET, TOKENS, 404, f"No route … {NO_TOKENS}", NO_ROUTE),
    Attack("oauth with a prefix", GET, PREFIXED_TOKENS, 404, f"No route … {NO_TOKENS}", NO_ROUTE),
    Attack("oauth with a slash", GET, f"{TOKENS}/", 404, f"No route … {NO_TOKENS}", NO_ROUTE),
]

METHODS = [
    Attack("post to config", POST, "/v1/config", 405, "POST is not allowed on /v1/config: allowed are GET"),
    Attack("head of config", HEAD, "/v1/config", 405),
    Attack("put", "PUT", f"{NS}/a", 405, f"PUT is not allowed on {NS}/a: allowed are DELETE, GET, HEAD"),
    Attack("delete all namespaces", DELETE, NS, 405, f"DELETE is not allowed on {NS}: allowed are GET, POST"),
    Attack("patch a table", PATCH, f"{NS}/a/tables/t", 405, "…: allowed are DELETE, GET, HEAD, POST"),
    Attack("trace", "TRACE", f"{NS}/a/tables/t", 405, "TRACE is not allowed on …"),
    Attack("options", "OPTIONS", "/v1/config", 405, "OPTIONS is not allowed on …"),
    Attack("propfind", "PROPFIND", "/v1/default/namespaces/a", 405, "PROPFIND …/v1/default/namespaces/a: …"),
    Attack("get a rename", GET, "/v1/tables/rename", 405, "GET is not allowed on …: allowed are POST"),
    Attack("get a transaction", GET, "/v1/transactions/commit", 405, "… allowed are POST"),
    Attack("delete health", DELETE, "/health", 405, "DELETE is not allowed on /health: allowed are GET"),
]

ENCODINGS = [
    Attack("percent and nothing", GET, f"{NS}/%", 400, "Invalid path piece '%': '%' must be followed by …"),
    Attack(
        "percent and one digit", GET, f"{NS}/a%2", 400, "Invalid path piece 'a%2': '%' must be followed …"
    ),
    Attack("percent and no digits", GET, f"{NS}/%zz", 400, "Invalid path piece '%zz': '%' must be …"),
    Attack("percent u", GET, f"{NS}/a/tables/%u0041", 400, "Invalid path piece '%u0041': …"),
    Attack("bad percent on head", HEAD, f"{NS}/%zz", 400),
    Attack("a lone byte", GET, f"{NS}/%ff", 400, "Invalid path piece '%ff': it is not percent-encoded UTF-8"),
    Attack("an overlong slash", GET, f"{NS}/%c0%af", 400, "Invalid path piece '%c0%af': it is not …"),
    Attack("an overlong nul", GET, f"{NS}/%c0%80", 400, "Invalid path piece '%c0%80': it is not …"),
    Attack("a surrogate", GET, f"{NS}/%ed%a0%80", 400, "Invalid path piece '%ed%a0%80': it is not …"),
    Attack(
        "beyond unicode", GET, f"{NS}/%f5%80%80%80", 400, "Invalid path piece '%f5%80%80%80': it is not …"
    ),
    Attack("half a letter", GET, f"{NS}/a/views/%c3", 400, "Invalid path piece '%c3': it is not …"),
    Attack(
        "query that is not utf-8",
        GET,
        f"{NS}?parent=%ff",
        400,
        "Invalid query: it is not percent-encoded UTF-8",
    ),
    Attack("prefix with a bad percent", GET, "/v1/%zz/namespaces", 400, "Invalid path piece '%zz': …"),
    Attack("prefix with nul", GET, "/v1/%00/namespaces", 400, "Invalid prefix '\\x00': it contains '\\x00'"),
    Attack("prefix up", GET, "/v1/%2e%2e/namespaces", 400, "Invalid prefix '..': no path can hold it"),
    Attack("percent twice", GET, f"{NS}/%2561", 404, "Namespace does not exist: %61", NO_NAMESPACE),
]


# Postgres holds no NUL, and its driver says so in a way that looks like a lost connection.
IDS = [
    attack
    for piece in ("%00", "a%00b", "%01", "x" * 32, "A" * 32, "0" * 33)
    for attack in (
        Attack(f"job {piece}", GET, f"{JOBS}/{piece}", 404, "Job does not exist: …", NO_JOB),
        Attack(f"job {piece} to hold", POST, f"{JOBS}/{piece}/hold", 404, "Job …", NO_JOB, body={}),
        Attack(
            f"job {piece} to end", POST, f"{JOBS}/{piece}/end", 404, "Job …", NO_JOB, body={"state": "done"}
        ),
        Attack(f"plan {piece}", GET, f"{NS}/a/tables/v2/plan/{piece}", 404, "…", "NoSuchPlanIdException"),
    )
]


@pytest.mark.parametrize("attack", [*ROUTES, *METHODS, *ENCODINGS, *IDS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


@pytest.mark.parametrize("attack", METHODS, ids=str)
def test_refused_method_is_told_which_are_allowed(victim: Victim, attack: Attack) -> None:
    answer = check_refused(attack, victim)

    allowed = answer.headers["allow"].split(", ")
    assert attack.method not in allowed
    assert allowed == sorted(allowed)
