"""Metrics reports are counted and never refused for what they say."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY

from tests.builders.http_catalog import error_of

URL = "/v1/namespaces/any/tables/thing/metrics"


def counted(kind: str) -> float:
    return REGISTRY.get_sample_value("icetower_client_reports_total", {"type": kind}) or 0.0


@pytest.mark.parametrize(
    ("report", "kind"),
    [
        ({"report-type": "scan-report", "table-name": "t"}, "scan-report"),
        ({"report-type": "commit-report", "metrics": {"odd": [None, {"x": 1}]}}, "commit-report"),
        ({"report-type": "weather-report"}, "other"),
    ],
)
def test_report_is_counted_by_its_type(api: httpx.Client, report: dict[str, Any], kind: str) -> None:
    before = counted(kind)

    response = api.post(URL, json=report)

    assert (response.status_code, response.content) == (204, b"")
    assert counted(kind) == before + 1


@pytest.mark.parametrize("report", [{}, [], {"report-type": 1}])
def test_what_is_no_report_is_refused(api: httpx.Client, report: object) -> None:
    assert error_of(api.post(URL, json=report))[0] == 400
