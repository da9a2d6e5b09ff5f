"""The settings file: what goes before what, what is refused by name, and that a broken one stands in nobody's way who
does not need it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.app.actions import ACTIONS
from console.cli.root import root
from console.cli.settings import defaults
from console.cli.settings.keys import textual_keys
from console.cli.settings.notifying import notify_settings
from console.cli.settings.reading import SettingsError, read_settings
from console.station.options import StationOptions
from tests.console import scenes
from tests.console.driving import running


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The place of the settings file, with nothing there yet."""
    path = tmp_path / "specdeck.toml"
    monkeypatch.setenv("SPECDECK_CONFIG", str(path))
    monkeypatch.setenv("SPECDECK_DATA_DIR", str(tmp_path))
    defaults._read.cache_clear()
    yield path
    defaults._read.cache_clear()


@pytest.fixture
def served(file: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StationOptions]:
    """What `specdeck serve` with these arguments would start a station with."""
    started: list[StationOptions] = []

    def run(options: StationOptions) -> int:
        started.append(options)
        return 0

    monkeypatch.setattr("console.station.run.run", run)

    def serve(*arguments: str) -> StationOptions:
        result = specdeck("serve", "--no-engine", "--port", "18765", *arguments)
        assert result.exit_code == 0, result.output
        return started[-1]

    return serve


def specdeck(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def test_command_line_before_environment_before_file_before_default(
    file: Path, served: Callable[..., StationOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served().max_k == 4
    file.write_text("[serve]\nmax_k = 6\nmax_num_seqs = 8\n[deciding]\nwindow_s = 120\n")
    defaults._read.cache_clear()
    assert (served().max_k, served().max_num_seqs, served().deciding) == (6, 8, {"window_s": 120})
    monkeypatch.setenv("SPECDECK_SERVE_MAX_K", "7")
    assert (served().max_k, served().max_num_seqs) == (7, 8)
    assert served("--max-k", "8").max_k == 8


def test_browsers_are_served_as_the_file_says_but_no_file_lets_them_write(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("console.cli.web_serve.serve_browsers", lambda **options: asked.append(options))
    file.write_text('[web]\nport = 9010\nsessions = 3\nallow_host = ["gpu7"]\n')
    monkeypatch.setenv("SPECDECK_WEB_SESSIONS", "4")
    defaults._read.cache_clear()
    assert specdeck("web", "--port", "9011").exit_code == 0
    assert (asked[0]["port"], asked[0]["sessions"], asked[0]["allow_host"]) == (9011, 4, ("gpu7",))
    assert asked[0]["write"] is False
    file.write_text('[web]\nwrite = true\ntoken = "0123456789abcdef"\nports = 1\nport = 70000\n')
    with pytest.raises(SettingsError) as refused:
        read_settings(file)
    said = "\n".join(refused.value.problems)
    assert "give --write when you mean it" in said
    assert "0123456789abcdef" not in said
    assert "did you mean port" in said
    assert "70000" in said


def test_show_names_the_source_of_each(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('[serve]\nmax_k = 6\n[deciding]\nwindow_s = 120\nmin_gain = 0.1\n[keys]\npause = "f6"\n')
    monkeypatch.setenv("SPECDECK_SERVE_MAX_NUM_SEQS", "16")
    monkeypatch.setenv("SPECDECK_DECIDING", '{"min_gain": 0.2}')
    monkeypatch.setenv("SPECDECK_API_KEY", "sesame")
    shown = specdeck("config", "show", "--json").stdout
    found = {one["name"]: (one["value"], one["source"]) for one in json.loads(shown)}
    assert found["serve.max_k"] == (6, "file")
    assert found["serve.max_num_seqs"] == ("16", "environment")
    assert found["serve.drafter"] == ("auto", "default")
    assert found["deciding.window_s"] == (120.0, "file")
    assert found["deciding.min_gain"] == (0.2, "environment")
    assert found["keys.pause"] == ("f6", "file")
    assert found["serve.api_key"][0] == "(set)"
    assert "sesame" not in shown
    assert {name for name in found if name.startswith("keys.")} == {f"keys.{name}" for name in ACTIONS}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[serve", "no TOML"),
        ("[other]", "[other] is unknown"),
        ("serve = 1", "serve must be a table"),
        ("[serve]\npolcy = 'off'", "polcy is unknown; did you mean policy?"),
        ("[serve]\nmax_k = 99", "max_k is 99: 99 is not in the range"),
        ("[serve]\nmax_k = inf", "max_k"),
        ("[serve]\nport = 1979-05-27", "port"),
        ("[serve]\nmax_k = " + "9" * 5000, "no TOML"),
        ("[serve]\nmax_k = true", "max_k is true: not a switch"),
        ("[serve]\nvanilla_engine = 1", "vanilla_engine is 1: true or false"),
        ("[serve]\nengine_args = 'x'", "engine_args is 'x': a list of texts"),
        ("[serve]\npolicy = 'static:x'", "policy"),
        ("[serve]\nspeedup_floor = -1", "--speedup-floor -1"),
        ("[serve]\napi_key = 'sesame'", "set SPECDECK_API_KEY"),
        ("[deciding]\nwindow_s = 30", "recent_s is 60 and window_s 30"),
        ("[deciding]\nwindow_s = 2026-01-01", "[deciding]"),
        ("[console]\ntheme = 'blue'", "there are: dark, light, clear"),
        ("[notify]\nbel = 'off'", "bel is unknown; did you mean bell?"),
        ("[notify]\nbell = 'loud'", "bell is 'loud': one of off, info, warn, critical"),
        ("[notify]\na_minute = 0", "a_minute is 0: a whole number from 1 to 60"),
        ("[notify]\nothers = 1", "others is 1: true or false"),
        (
            "[notify]\nwebhook = 'ftp://h/sesame'",
            "webhook can't be used: the address must begin with http:// or https://",
        ),
        ("[keys]\nfoo = 'x'", "foo is unknown"),
        ("[keys]\nleave = 'p'", "pause and leave would both be p"),
        ("[keys]\npause = 'ctrl+a'", "taken by terminal multiplexers"),
        ("[keys]\npause = 'nokey'", "no key is called 'nokey'"),
        ("[keys]\npause = 5", 'such as "f5"'),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_table_and_key(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    checked = specdeck("config", "validate")
    assert checked.exit_code == 2
    assert words in checked.stderr
    assert "sesame" not in checked.output
    assert specdeck("serve", "--no-engine", "--port", "18765").exit_code == 2


def test_validate_names_all_that_is_wrong_at_once(file: Path) -> None:
    file.write_text("[serve]\nmax_k = 99\nport = 'x'\n[console]\ntheme = 'blue'\n")
    lines = specdeck("config", "validate").stderr.splitlines()
    assert [str(file) in line for line in lines] == [True, True, True, False]


def test_a_broken_file_stands_in_nobodys_way_who_does_not_need_it(file: Path) -> None:
    file.write_text("[serve\n")
    assert specdeck("config", "path").stdout.strip() == str(file)
    assert specdeck("schedule", "check", "[[1,8,2]]").exit_code == 0
    assert specdeck("status").exit_code == 3, "no station runs: that is all that is wrong"


def test_a_dialogs_keys_are_its_own(file: Path) -> None:
    file.write_text('[keys]\nstop = "p"\n')
    assert specdeck("config", "validate").exit_code == 0, "`p` pauses on the screens, which the dialog keeps out"


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("?", "question_mark"),
        ("f5", "f5"),
        ("ctrl+x", "ctrl+x"),
        ("+", "plus"),
        (",", "comma"),
        ("ctrl+x, f2", "ctrl+x,f2"),
    ],
)
def test_keys_are_written_as_they_are_pressed(written: str, named: str) -> None:
    assert textual_keys(written) == named


def test_a_webhook_is_the_stations_and_only_its_host_is_shown(
    file: Path, served: Callable[..., StationOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[notify]\nwebhook = 'https://hooks.example.org/sesame'\nwebhook_from = 'info'\nbell = 'off'\n")
    started = served()
    assert (started.webhook, started.webhook_from) == ("https://hooks.example.org/sesame", "info")
    monkeypatch.setenv("SPECDECK_NOTIFY_WEBHOOK", "https://other.example.org/open-sesame")
    monkeypatch.setenv("SPECDECK_NOTIFY_A_MINUTE", "2")
    assert served().webhook == "https://other.example.org/open-sesame"
    result = specdeck("config", "show", "--json")
    found = {one["name"]: (one["value"], one["source"]) for one in json.loads(result.stdout)}
    assert found["notify.webhook"] == ("(set) https://other.example.org/…", "environment")
    assert (found["notify.bell"], found["notify.note"]) == (("off", "file"), ("info", "default"))
    assert "sesame" not in result.output
    told = notify_settings(defaults.in_force())
    assert (told.bell, told.a_minute, told.others) == ("off", 2, True)
    monkeypatch.setenv("SPECDECK_NOTIFY_BELL", "loud")
    refused = specdeck("config", "show")
    assert (refused.exit_code, "SPECDECK_NOTIFY_BELL is 'loud'" in refused.stderr) == (2, True)


async def test_the_console_has_the_keys_and_the_theme_of_the_file(file: Path) -> None:
    file.write_text('[keys]\npause = "f6"\n[console]\ntheme = "light"\n')
    found = defaults.in_force()
    async with running(scenes.live(), keymap=found.keys, theme=found.theme) as (app, _, pilot):
        assert app.theme == "specdeck-light"
        await pilot.press("p")
        assert app.picture.paused_since is None
        await pilot.press("f6")
        assert app.picture.paused_since is not None


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_names = st.sampled_from(
    ["max_k", "policy", "host", "engine_args", "window_s", "theme", "pause", "bell", "webhook", "x"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    tables=st.dictionaries(
        st.sampled_from(["serve", "deciding", "console", "keys", "notify", "x"]), st.dictionaries(_names, _values)
    )
)
def test_whatever_stands_in_it_is_read_or_refused(tmp_path: Path, tables: dict[str, dict[str, Any]]) -> None:
    path = tmp_path / "any.toml"
    path.write_text(
        "\n".join(f"[{name}]\n" + "".join(_line(*pair) for pair in table.items()) for name, table in tables.items())
    )
    with contextlib.suppress(SettingsError):
        read_settings(path)


def _line(name: str, value: Any) -> str:
    """JSON is TOML but for its objects and its null."""
    return (
        f"{name} = {json.dumps(value)}\n".replace("null", "nan") if not isinstance(value, dict) else f"{name} = {{}}\n"
    )
