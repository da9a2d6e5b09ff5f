"""The command line before anything runs: quick, complete, and saying what is wrong and what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from console.cli.root import COMMANDS, root

HEAVY = ("textual", "duckdb", "pyarrow", "numpy", "zmq", "msgspec", "psutil", "httpx", "vllm", "torch", "asyncio")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments), prog_name="specdeck")


def test_help_imports_click_and_next_to_nothing_else() -> None:
    script = f"""
import sys
sys.argv = ["specdeck", "--help"]
from console.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
print("loaded:", [name for name in {HEAVY!r} if name in sys.modules])
print("commands:", [name for name in sys.modules if name.startswith("console.cli.")])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout
    assert "console.cli.serve" not in done.stdout


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_shows_its_help_with_an_example(name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0, result.output
    assert "Example: specdeck" in result.output


def test_the_list_of_commands_is_the_registry() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for name, lazy in COMMANDS.items():
        assert name in result.output
        assert lazy.summary.split(":")[0][:20] in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nonsense",), "No such command"),
        (("serve", "--port", "0"), "--port"),
        (("serve", "--host", "0.0.0.0"), "--api-key"),
        (("serve", "--store", "/nowhere/at/all.duckdb"), "no folder"),
        (("serve", "--drafter", "ngram", "--method", "eagle"), "method"),
        (("serve", "--model", "org/m", "--drafter", "bundled"), "trained for the bundled model"),
        (("serve", "--drafter", "bundled", "--method", "eagle"), "method"),
        (("serve", "--drafter", "./no-such-head"), "no such folder"),
        (("serve", "--engine-arg=--port=1"), "--port"),
        (("report", "/nowhere.duckdb"), "no such file"),
        (("report", "--by", "colour"), "colour"),
        (("report", "--window", "soon"), "5m"),
        (("report", "--at", "noon"), "Unix seconds"),
        (("replay", "/nowhere.jsonl", "--headless"), "does not exist"),
        (("trace", "info", "/nowhere.jsonl"), "does not exist"),
        (("export", "a", "b", "c"), "[SOURCE] OUT"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_names_the_place(arguments: tuple[str, ...], words: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output


@pytest.mark.parametrize(
    "arguments", [("status",), ("attach",), ("report",), ("export", "out.duckdb"), ("stop", "--station-only")]
)
def test_without_a_station_commands_that_need_one_are_exit_code_3(
    arguments: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDECK_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    monkeypatch.chdir(tmp_path_factory.mktemp("work"))
    result = invoke(*arguments)
    assert result.exit_code == 3, result.output
    assert "specdeck serve" in result.output


def test_stop_with_nothing_running_is_fine(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDECK_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    result = invoke("stop")
    assert result.exit_code == 0
    assert "nothing was running" in result.output


def test_the_console_needs_a_terminal_and_says_what_does_not() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "specdeck serve" in result.output
