"""`specdeck schedule`: what it prints, what it refuses, and that both forms lead into each other."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from console.cli.root import root

CASE = "[[1,16,3],[32,128,2],[256,2048,0]]"


def schedule(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(root, ["schedule", *arguments], prog_name="specdeck", input=stdin)


def test_show_prints_k_per_batch_size_as_json() -> None:
    result = schedule("show", "[[1,16,3],[32,128,2]]", "--max-k", "3", "--at", "20", "--at", "200", "--json")
    assert result.exit_code == 0
    assert result.stdout.strip() == '{"k": {"20": 3, "200": 2}, "clamped": []}'


def test_gaps_and_the_tail_carry_the_last_k() -> None:
    sizes = (20, 200, 256, 5000)
    result = schedule("show", CASE, "--json", *(word for size in sizes for word in ("--at", str(size))))
    assert json.loads(result.stdout)["k"] == {"20": 3, "200": 2, "256": 0, "5000": 0}


def test_k_above_the_maximum_is_shown_as_clamped() -> None:
    result = schedule("show", CASE, "--max-k", "2", "--at", "20", "--json")
    assert json.loads(result.stdout) == {"k": {"20": 2}, "clamped": [[1, 16, 3]]}
    result = schedule("show", CASE, "--max-k", "2", "--at", "20")
    assert result.stdout.splitlines()[1].split() == ["20", "2"]
    assert "[1, 16, 3]: K 3 is clamped to 2" in result.stderr
    result = schedule("check", CASE, "--max-k", "2", "--json")
    assert (result.exit_code, json.loads(result.stdout)["clamped"]) == (0, [[1, 16, 3]])


def test_without_sizes_the_whole_schedule_is_shown() -> None:
    lines = [line.split() for line in schedule("show", CASE).stdout.splitlines()]
    assert lines == [["running", "K"], ["1-31", "3"], ["32-255", "2"], ["256-", "0"]]
    assert json.loads(schedule("show", CASE, "--json").stdout)["k"] == {"1": 3, "32": 2, "256": 0}


@pytest.mark.parametrize("command", ["check", "show", "convert"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("[]", "non-empty"),
        ("[[2,4,1]]", "entry 1 ([2, 4, 1])"),
        ("[[1,4,2],[4,8,1]]", "entry 2 ([4, 8, 1])"),
        ("[[1,4,2],[8,5,1]]", "entry 2 ([8, 5, 1])"),
        ("[[1,4,-1]]", "entry 1 ([1, 4, -1])"),
        ("[[1,4,2.5]]", "entry 1 ([1, 4, 2.5])"),
        ("[[1,4,true]]", "entry 1 ([1, 4, True])"),
        ("[[1,4]]", "entry 1 ([1, 4])"),
        ('[[1,4,2],"text"]', "entry 2 ('text')"),
        ("[[1,4,2]", "JSON"),
        ("3", "No such file"),
    ],
)
def test_a_wrong_schedule_is_exit_code_2_with_the_entry_on_stderr(command: str, given: str, words: str) -> None:
    result = schedule(command, given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_a_file_is_named_with_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "night.toml"
    path.write_text("[schedule]\n1-4 = 4\n3-8 = 2\n")
    result = schedule("check", str(path))
    assert result.exit_code == 2
    assert f"{path}: entry 2 ([3, 8, 2])" in result.stderr


def test_a_valid_schedule_is_exit_code_0_and_no_data() -> None:
    result = schedule("check", CASE)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "K 3 from 1, 2 from 32, 0 from 256" in result.stderr


def test_convert_leads_into_the_other_form_and_back(tmp_path: Path) -> None:
    toml = schedule("convert", CASE).stdout
    assert tomllib.loads(toml) == {"schedule": {"1-16": 3, "32-128": 2, "256-2048": 0}}
    path = tmp_path / "night.toml"
    path.write_text(toml)
    assert json.loads(schedule("convert", str(path)).stdout) == json.loads(CASE)
    assert schedule("convert", str(path), "--to", "toml").stdout == toml


def test_stdin_may_be_of_either_form() -> None:
    assert json.loads(schedule("convert", "-", stdin="[schedule]\n1-4 = 2\n").stdout) == [[1, 4, 2]]
    assert "1-4 = 2" in schedule("convert", "-", stdin="[[1,4,2]]").stdout
    for wrong in (b"", b"\xff", b"[schedule]\n"):
        result = schedule("check", "-", stdin=wrong)
        assert result.exit_code == 2, wrong
        assert "stdin: " in result.stderr


def test_a_size_or_maximum_that_cannot_be_is_usage() -> None:
    assert schedule("show", CASE, "--at", "0").exit_code == 2
    assert schedule("show", CASE, "--max-k", "-1").exit_code == 2
    assert schedule("convert", CASE, "--to", "yaml").exit_code == 2


@pytest.mark.parametrize("command", ["check", "show", "convert"])
def test_every_command_shows_an_example(command: str) -> None:
    assert "Example: specdeck schedule" in schedule(command, "--help").stdout
    assert "[schedule]" in schedule("--help").stdout
