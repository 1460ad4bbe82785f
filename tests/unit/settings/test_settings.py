"""What the settings are, where each comes from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import InvalidSetting
from app.fileio.storage_settings import masked
from app.setting_types import DatabaseUrl, SecretProperties, mask_url_password
from app.settings import Settings, effective_settings, load_settings

CONFIGURATION_PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and an environment without a variable of ours."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"ICETOWER_{name.upper()}", raising=False)
    for name in ("ICETOWER_CONFIG", "ICETOWER_URI", "ICETOWER_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_source_everything_lives_in_a_folder_of_the_working_directory(folder: Path) -> None:
    settings = load_settings().settings

    assert settings.database_url.get_secret_value() == f"sqlite:///{folder}/.icetower/icetower.db"
    assert settings.default_warehouse_location == f"file://{folder}/.icetower/warehouse"
    assert (settings.host, settings.port) == ("127.0.0.1", 8181)


def test_each_source_wins_over_the_ones_below_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "icetower.toml").write_text("port = 1\nworkers = 1\nthreads = 1\ncommit_attempts = 1\n")
    (folder / ".env").write_text("ICETOWER_PORT=2\nICETOWER_WORKERS=2\nICETOWER_THREADS=2\n")
    monkeypatch.setenv("ICETOWER_PORT", "3")
    monkeypatch.setenv("ICETOWER_WORKERS", "3")

    loaded = load_settings({"port": 4, "workers": None})

    settings = loaded.settings
    assert (settings.port, settings.workers, settings.threads, settings.commit_attempts) == (4, 3, 2, 1)
    assert loaded.sources == {
        "port": "--port",
        "workers": "ICETOWER_WORKERS",
        "threads": "ICETOWER_THREADS in .env",
        "commit_attempts": "icetower.toml",
    }


def test_the_variable_icetower_config_names_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "icetower.toml").write_text("port = 1\n")
    (folder / "other.toml").write_text("port = 2\n")
    monkeypatch.setenv("ICETOWER_CONFIG", "other.toml")

    assert load_settings().settings.port == 2
    assert load_settings(config_file=folder / "icetower.toml").settings.port == 1


@pytest.mark.parametrize("name", ["icetower.toml", ".env"])
def test_a_name_of_a_file_of_settings_that_is_something_else_is_refused(folder: Path, name: str) -> None:
    (folder / name).symlink_to("nowhere")
    with pytest.raises(InvalidSetting, match=rf"Cannot read (the settings file )?{name}: .*No such file"):
        load_settings()

    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(InvalidSetting, match=rf"Cannot read (the settings file )?{name}: .*Is a directory"):
        load_settings()


def test_a_virtual_environment_of_python_that_is_called_dotenv_is_passed_over(folder: Path) -> None:
    (folder / ".env").mkdir()
    (folder / ".env" / "pyvenv.cfg").touch()

    assert load_settings().sources == {}


def test_icetower_config_is_read_from_dotenv_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text("ICETOWER_CONFIG=other.toml\n")
    with pytest.raises(InvalidSetting, match=r"Cannot read the settings file other\.toml"):
        load_settings()

    (folder / "other.toml").write_text("port = 2\n")
    (folder / "third.toml").write_text("port = 3\n")
    assert load_settings().settings.port == 2
    monkeypatch.setenv("ICETOWER_CONFIG", "third.toml")
    assert load_settings().settings.port == 3


def test_an_empty_variable_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_PORT", "")

    assert load_settings().settings.port == 8181


def test_building_settings_by_hand_reads_no_source(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "icetower.toml").write_text("nonsense = 1\n")
    monkeypatch.setenv("ICETOWER_PORT", "3")

    assert Settings().port == 8181


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("prot", "Unknown setting 'prot' in icetower.toml: did you mean port?"),
        ("xyzzy", "Unknown setting 'xyzzy' in icetower.toml; `icetower config show` lists all there are"),
    ],
)
def test_an_unknown_key_of_the_file_is_refused(folder: Path, key: str, told: str) -> None:
    (folder / "icetower.toml").write_text(f"{key} = 1\n")

    with pytest.raises(InvalidSetting) as refused:
        load_settings()

    assert str(refused.value) == told


def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_DATABASE_URI", "sqlite:///x.db")

    with pytest.raises(
        InvalidSetting, match="ICETOWER_DATABASE_URI in the environment: did you mean ICETOWER_DATABASE_URL"
    ):
        load_settings()


def test_an_unknown_variable_in_dotenv_is_refused_and_those_of_others_are_not(folder: Path) -> None:
    (folder / ".env").write_text("SOMETHING_ELSE=1\nport=9\nICETOWER_HOSTS=x\n")

    with pytest.raises(InvalidSetting, match=r"ICETOWER_HOSTS in \.env: did you mean ICETOWER_HOST\?"):
        load_settings()

    (folder / ".env").write_text("SOMETHING_ELSE=1\nport=9\n")
    assert load_settings().settings.port == 8181


@pytest.mark.parametrize(
    "line",
    [
        "ICETOWER_DATABASE_URL='postgresql://u:hunter2@h/d",
        "icetower_port : 9",
        "export ICETOWER_PORT='9' 10",
        "ICETOWER_PORT",
    ],
)
def test_a_line_of_dotenv_that_is_no_assignment_is_refused_and_those_of_others_are_not(
    line: str, folder: Path
) -> None:
    (folder / ".env").write_text(f"=other\n{line}\nICETOWER_HOST=::1\n")

    with pytest.raises(InvalidSetting, match=r"^Cannot read line 2 of \.env: expected NAME=value") as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)

    (folder / ".env").write_text("=other\nOTHER='open\nICETOWER_HOST=::1\n")
    assert load_settings().settings.host == "::1"


def test_a_dotenv_that_is_not_text_is_refused(folder: Path) -> None:
    (folder / ".env").write_bytes(b"ICETOWER_HOST=\xff\xfe")

    with pytest.raises(InvalidSetting, match=r"Cannot read \.env"):
        load_settings()


def test_variables_that_kubernetes_makes_for_a_service_called_icetower_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ICETOWER_PORT", "tcp://10.0.0.1:8181")
    monkeypatch.setenv("ICETOWER_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("ICETOWER_SERVICE_PORT", "8181")
    monkeypatch.setenv("ICETOWER_SERVICE_PORT_HTTP", "8181")
    monkeypatch.setenv("ICETOWER_PORT_8181_TCP_ADDR", "10.0.0.1")
    monkeypatch.setenv("ICETOWER_PORT_8181_TCP", "tcp://10.0.0.1:8181")

    loaded = load_settings()

    assert loaded.settings.port == 8181
    assert loaded.sources == {}


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("ICETOWER_PORT", "70000", "port (ICETOWER_PORT): Input should be less than or equal to 65535"),
        (
            "ICETOWER_DATABASE_URL",
            "mysql://u:hunter2@h/d",
            "database_url (ICETOWER_DATABASE_URL): expected a URL",
        ),
        ("ICETOWER_DEFAULT_WAREHOUSE_STORAGE", "{hunter2", "expected a JSON object of names and values"),
        ("ICETOWER_DEFAULT_WAREHOUSE_STORAGE", '["hunter2"]', "expected names and values"),
        ("ICETOWER_ALLOWED_LOCATIONS", "[1", "expected a comma-separated list or a JSON array"),
        ("ICETOWER_DEFAULT_WAREHOUSE_LOCATION", " ", "expected a folder or a URI"),
        ("ICETOWER_ALLOWED_HOSTS", "cafe:80", "expected a host name such as catalog.example.com"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(InvalidSetting) as refused:
        load_settings()

    assert told in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["expired_file_grace_seconds", "orphan_grace_hours", "history_days", "workers", "port"]
)
@pytest.mark.parametrize("value", ["true", "false"])
def test_a_switch_is_no_number(folder: Path, name: str, value: str) -> None:
    (folder / "icetower.toml").write_text(f"{name} = {value}\n")

    with pytest.raises(
        InvalidSetting, match=rf"{name} \(icetower\.toml\): expected a number, found {value}$"
    ):
        load_settings()


def test_every_wrong_value_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_PORT", "x")
    monkeypatch.setenv("ICETOWER_WORKERS", "0")

    with pytest.raises(InvalidSetting, match=r"port \(ICETOWER_PORT\).*; workers \(ICETOWER_WORKERS\)"):
        load_settings()


@pytest.mark.parametrize("text", ["port = [", "\xff"])
def test_a_file_that_is_not_toml_is_refused(folder: Path, text: str) -> None:
    (folder / "icetower.toml").write_bytes(text.encode("latin-1"))

    with pytest.raises(InvalidSetting, match=r"Cannot read the settings file icetower\.toml"):
        load_settings()


def test_a_file_that_was_named_and_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_CONFIG", "nowhere.toml")

    with pytest.raises(InvalidSetting, match=r"Cannot read the settings file nowhere\.toml"):
        load_settings()


def test_storage_settings_come_as_json_as_a_table_or_with_dotted_keys(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {"s3.endpoint": "http://store:9000", "s3.path-style-access": "true", "s3.max": "3"}
    (folder / "icetower.toml").write_text(
        '[default_warehouse_storage]\ns3.endpoint = "http://store:9000"\n'
        '"s3.path-style-access" = true\ns3.max = 3\n'
    )

    assert load_settings().settings.default_warehouse_storage.get_secret_value() == expected

    monkeypatch.setenv("ICETOWER_DEFAULT_WAREHOUSE_STORAGE", '{"s3.region": "eu-west-1"}')
    assert load_settings().settings.default_warehouse_storage.get_secret_value() == {"s3.region": "eu-west-1"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("s3://bucket/path/", "s3://bucket/path"),
        ("file:///", "file:///"),
        ("file:/data/lake", "file:/data/lake"),
        ("/data/my lake", "file:///data/my lake"),
        ("abfss://c@account.dfs.core.windows.net/x", "abfss://c@account.dfs.core.windows.net/x"),
    ],
)
def test_a_folder_becomes_a_uri_and_a_uri_stays(value: str, expected: str) -> None:
    assert Settings(default_warehouse_location=value).default_warehouse_location == expected


def test_allowed_locations_are_separated_by_commas_or_are_a_json_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ICETOWER_ALLOWED_LOCATIONS", "s3://a/x/, /data ,")
    assert load_settings().settings.allowed_locations == ("s3://a/x", "file:///data")

    monkeypatch.setenv("ICETOWER_ALLOWED_LOCATIONS", '["s3://a/b,c"]')
    assert load_settings().settings.allowed_locations == ("s3://a/b,c",)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("allowed_locations", "s3://a, s3://", "expected s3://bucket/key"),
        ("allowed_locations", "foo:bar", "expected foo://"),
        (
            "allowed_locations",
            "ftp://a/b",
            "'ftp://a/b': known schemes are abfs, abfss, file, gs",
        ),
        ("allowed_locations", "/data/../other", "segment"),
        ("manifest_folder", "s3://a/b", "expected a folder of this machine, not a URI"),
        ("manifest_folder", "/dev/null", "expected a folder: this is a file"),
        ("manifest_folder", "a" * 300, "it cannot be a folder: File name too long"),
        ("default_warehouse_location", "~no-such-user/x", "there is no user whose folder this could be"),
        ("allowed_locations", "/a,~no-such-user/x", "there is no user whose folder this could be"),
    ],
)
def test_a_place_that_cannot_be_is_refused_by_name(
    name: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"ICETOWER_{name.upper()}"
    monkeypatch.setenv(variable, value)

    with pytest.raises(InvalidSetting, match=rf"^Invalid setting {name}.* \({variable}\): .*{reason}"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "default_warehouse_storage",
            '{"a":' * 100_000,
            "a JSON object of names and values: it is nested too",
        ),
        (
            "allowed_locations",
            "[" * 100_000,
            "a comma-separated list or a JSON array: it is nested too deeply",
        ),
        ("default_warehouse_properties", r'{"a": "\ud800"}', "half of a character"),
        ("default_warehouse_overrides", r'{"\udfff": "a"}', "half of a character"),
    ],
)
def test_json_that_nothing_could_work_with_is_refused_by_name(
    name: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"ICETOWER_{name.upper()}"
    monkeypatch.setenv(variable, value)

    with pytest.raises(InvalidSetting, match=rf"^Invalid setting {name} \({variable}\): .*{reason}"):
        load_settings()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////data/x.db", "sqlite:////data/x.db"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://u:hunter2@h:5432/d", "postgresql://u:********@h:5432/d"),
        ("postgresql://u:hun/ter@2@h/d", "postgresql://u:********@h/d"),
        ("postgresql://:hunter2@h/d", "postgresql://:********@h/d"),
        ("postgresql://h/d?user=u&password=hunter2&x=1", "postgresql://h/d?user=u&password=********&x=1"),
    ],
)
def test_a_password_in_a_url_is_masked(url: str, shown: str) -> None:
    assert mask_url_password(url) == shown


def test_storage_secrets_are_masked_and_references_are_not() -> None:
    storage = {
        "s3.endpoint": "http://store:9000",
        "s3.access-key-id": "name of a key",
        "hdfs.endpoint": "http://anna:hunter2@gateway",
        "header.Authorization": "hunter2",
        "s3.secret-access-key": "hunter2",
        "s3.session-token": "env:TOKEN",
        "adls.account-key": "hunter2",
        "adls.sas-token.account": "hunter2",
    }

    shown = masked(storage)

    assert "hunter2" not in shown.values()
    assert shown["s3.endpoint"] == "http://store:9000"
    assert shown["s3.session-token"] == "env:TOKEN"


def test_no_secret_is_in_the_printed_settings_or_in_the_effective_ones() -> None:
    loaded = load_settings(
        {
            "database_url": "postgresql://u:hunter2@h/d",
            "default_warehouse_storage": {"s3.secret-access-key": "hunter2"},
            "default_warehouse_properties": {"s3.secret-access-key": "hunter2"},
            "default_warehouse_overrides": {"token": "hunter2"},
        }
    )

    assert "hunter2" not in f"{loaded.settings!r} {loaded.settings} {effective_settings(loaded)}"
    assert loaded.settings.database_url == DatabaseUrl("postgresql://u:hunter2@h/d")
    assert loaded.settings.default_warehouse_storage == SecretProperties({"s3.secret-access-key": "hunter2"})


@pytest.mark.parametrize(
    "name",
    [name for name in Settings.model_fields if name.endswith(("_seconds", "_minutes", "_hours", "_days"))],
)
@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "99999999999"])
def test_no_time_is_longer_than_what_waits_for_it_can_wait(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ICETOWER_{name.upper()}", value)

    with pytest.raises(InvalidSetting, match=rf"^Invalid setting {name} \(ICETOWER_{name.upper()}\): "):
        load_settings()


def test_every_setting_is_described_and_listed() -> None:
    listed = effective_settings(load_settings({"port": 9}))

    assert [setting.name for setting in listed] == list(Settings.model_fields)
    assert all(setting.description.endswith(".") for setting in listed)
    assert [setting.source for setting in listed if setting.name in {"port", "host"}] == ["default", "--port"]


def test_the_page_about_configuration_has_every_setting_with_its_default_and_meaning() -> None:
    page = CONFIGURATION_PAGE.read_text(encoding="utf-8")

    rows = [line for line in page.splitlines() if line.startswith("| `")]

    assert rows == [_row(name) for name in Settings.model_fields]


def _row(name: str) -> str:
    field = Settings.model_fields[name]
    default = field.default
    text = str(
        default.get_secret_value()
        if isinstance(default, DatabaseUrl | SecretProperties)
        else ", ".join(default) or default
        if isinstance(default, tuple)
        else default
    )
    shown = (
        "none" if text in {"{}", "()", "None"} else f"`{text.lower() if isinstance(default, bool) else text}`"
    )
    description = (field.description or "").replace("<", "&lt;")
    return f"| `{name}` | {shown} | {description} |"
