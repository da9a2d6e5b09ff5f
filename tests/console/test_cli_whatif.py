"""`specdeck whatif`: what it prints for a trace, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from console.cli.outcomes import BAD_INPUT, OK
from console.cli.root import root

TRACE: Final = str(Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst")
RECORDED: Final = {"tokens_per_step", "tokens_per_second"}
PREDICTED: Final = {
    "tokens_per_step", "tokens_per_step_low", "tokens_per_step_high", "naive_tokens_per_step", "exact_share",
    "tokens_per_second",
}  # fmt: skip


def whatif(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["whatif", *arguments])


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    result = whatif(TRACE, "--policy", "static:4", "--policy", "schedule:[[1,4,4],[5,32,1]]", "--json")
    assert result.exit_code == OK
    return list(json.loads(result.stdout))


def test_json_has_recorded_and_predicted_figures_of_all_and_of_each_bucket(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        assert len(answer["buckets"]) > 3
        for one in (answer, *answer["buckets"]):
            assert set(one["recorded"]) >= RECORDED
            assert set(one["predicted"]) >= PREDICTED
    assert [answer["policy"]["mode"] for answer in answers] == ["static", "schedule"]


def test_the_recorded_policy_comes_out_as_recorded(answers: list[dict[str, Any]]) -> None:
    for one in (answers[0], *answers[0]["buckets"]):
        assert one["predicted"]["tokens_per_step"] == pytest.approx(one["recorded"]["tokens_per_step"])


def test_one_policy_is_one_object_over_the_span_that_was_asked_for(answers: list[dict[str, Any]]) -> None:
    result = whatif(TRACE, "--policy", "static:4", "--to", "1", "--json")
    assert (result.exit_code, "nothing was recorded then" in result.stderr) == (BAD_INPUT, True)
    answer = json.loads(whatif(TRACE, "--policy", "off", "--json").stdout)
    assert answer["predicted"]["tokens_per_step"] == 1.0
    assert answer["decode_rows"] == answers[0]["decode_rows"]


def test_the_text_has_a_line_a_bucket_and_says_what_was_assumed() -> None:
    result = whatif(TRACE, "--policy", "static:1")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("static:1")
    assert any(line.startswith("code") and "→" in line for line in lines)
    assert any(line.startswith("all") for line in lines)
    assert "no tokens/s: e0: how long steps at K 1" in result.stdout
    assert "eagle3 drafted right" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((TRACE, "--policy", "static"), "static takes a whole number"),
        ((TRACE, "--policy", "schedule:[[2,3,4]]"), "must start at batch size 1"),
        ((TRACE,), "--policy"),
        (("nowhere.jsonl", "--policy", "off"), "no such file"),
        (("live", "--policy", "off"), "specdeck export"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[str, ...], words: str) -> None:
    result = whatif(*arguments)
    assert result.exit_code == BAD_INPUT
    assert words in result.stderr
