"""Which hosts are names of the server; what browsers send is in tests/bad_input."""

from __future__ import annotations

import pytest

from app.api.entrance.addresses import host_check
from app.errors import InvalidSetting
from app.settings import load_settings


@pytest.mark.parametrize("bound_to", ["127.0.0.1", "localhost", "::1"])
@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        (b"localhost", True),
        (b"[::1]:80", True),
        (b"127.0.0.9", True),
        (b"catalog.example.com", True),
        (b"Catalog.Example.com:443", True),
        (b"a.lake.example", True),
        (b"a.b.lake.example", True),
        (b"lake.example", False),
        (b"notlake.example", False),
        (b"10.0.0.1", False),
        (b"example.com", False),
        (b"x.catalog.example.com", False),
    ],
)
def test_on_loopback_only_local_and_allowed_names_are_ours(bound_to: str, host: bytes, is_ours: bool) -> None:
    assert host_check(bound_to, ("catalog.example.com", "*.lake.example"))(host) is is_ours


@pytest.mark.parametrize("bound_to", ["0.0.0.0", "::", "10.0.0.1", "catalog"])
def test_elsewhere_every_name_is_ours_until_some_are_allowed(bound_to: str) -> None:
    anything, chosen = host_check(bound_to, ()), host_check(bound_to, ("tower",))
    hosts = (b"evil.example", b"tower:80", b"10.1.2.3:80", b"[fd00::1]", b"localhost")

    assert [anything(host) for host in hosts] == [True] * 5
    assert [chosen(host) for host in hosts] == [False, True, True, True, True]


def test_a_star_allows_every_name() -> None:
    assert host_check("127.0.0.1", ("*",))(b"evil.example")


@pytest.mark.parametrize("value", ["maybe", "8182", "tower:", "tower:65536", "::1:8182", "http://tower:8182"])
def test_management_that_is_no_address_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_MANAGEMENT", value)

    with pytest.raises(InvalidSetting, match=r"expected on, off, or an address such as 127\.0\.0\.1:8182"):
        load_settings()


@pytest.mark.parametrize("value", ["http://tower", "tower:8181", "tower/x", "to*er"])
def test_setting_that_is_no_name_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_ALLOWED_HOSTS", f"localhost,{value}")

    with pytest.raises(InvalidSetting, match="expected a host name such as"):
        load_settings()
