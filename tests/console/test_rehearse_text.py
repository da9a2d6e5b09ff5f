"""Rehearsals as text: Markdown for a README, a table that fits its terminal, colours only where they are wanted."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import msgspec
import pytest

from console.cli.rehearse_text import markdown, table
from store.operating_map.making import make_map
from store.operating_map.records import OperatingMap
from store.rehearsal.plan import Phase
from store.rehearsal.records import FallbackVerdict
from store.rehearsal.result_records import RehearsalResult
from store.rehearsal.results import results
from tests.store.rehearsal_folders import CHAT, QUIET, plan, simulate

HOSTILE = "a|b`<i>\x1b[2J[x](y)"
PHASES = (QUIET, Phase(name="busy", seconds=12.0, rate=4.0), msgspec.structs.replace(QUIET, seconds=10.0))
VERDICT = FallbackVerdict(
    passed=True, executed=[4, 1, 0, 1, 4], transitions=4, steps=300, acceptance_before=0.61, acceptance_after=0.6
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[RehearsalResult, OperatingMap]:
    folder = tmp_path_factory.mktemp("rehearsals") / "text"
    of = plan(arms=("without", "k0", "k4", "proposed"), phases=PHASES, repeats=2, fallback_test=True)
    of = msgspec.structs.replace(of, mix=(*of.mix[:1], msgspec.structs.replace(CHAT, name=HOSTILE)))
    simulate(folder, of, proposal=[(1, 4, 4), (5, 32, 0)], fallback=VERDICT, tax=1.05)
    return results(folder), make_map(folder)


def test_markdown_names_the_machine_and_holds_every_part(made: tuple[RehearsalResult, OperatingMap]) -> None:
    text = markdown(*made)
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles == [
        "# Rehearsal `quick`, 2026-09-21 14:13 UTC", "## What was run", "## Arms and phases", "## The whole pass",
        "## Operating map", "## Proposed schedule", "## Against the fixed arms", "## Fallback test",
        "## What is not known",
    ]  # fmt: skip
    assert "- machine: a processor, 2 threads" in text
    assert "- vLLM: 0.32.0" in text
    assert "| quiet (3) |" in text
    assert "[[1, 4, 4], [5, 32, 0]]" in text
    assert "passed: K 4, 1, 0, 1, 4 executed" in text
    assert "0.61 before, 0.60 after" in text
    assert "Spec tax" in text
    assert "proposed did not meet every repeat" in text


def test_names_are_data_in_markdown_and_in_the_terminal(made: tuple[RehearsalResult, OperatingMap]) -> None:
    text = markdown(*made)
    assert "\x1b" not in text + "".join(table(*made, 80))
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for block in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    assert "<i>" not in text.replace("\\<i>", "")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_fits_its_terminal(made: tuple[RehearsalResult, OperatingMap], width: int) -> None:
    lines = table(*made, width)
    assert max(map(columns, lines)) <= width
    text = "\n".join(lines)
    for said in (
        "without",
        "k4",
        "proposed",
        "schedule, from the mix",
        "gain over without by running",
        "fallback test",
    ):
        assert said in text


def columns(line: str) -> int:
    return sum(0 if unicodedata.combining(char) else 1 for char in line)


def test_the_chart_is_plain_where_colours_are_not_wanted(
    made: tuple[RehearsalResult, OperatingMap], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert any("\x1b[" in line for line in table(*made, 80))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any("\x1b" in line for line in table(*made, 80))


def test_one_pass_without_a_map_says_so(made: tuple[RehearsalResult, OperatingMap], tmp_path: Path) -> None:
    simulate(tmp_path, plan(arms=("k0", "k4"), phases=PHASES[:1]))
    result, found = results(tmp_path), make_map(tmp_path)
    for text in (markdown(result, found), "\n".join(table(result, found, 80)), markdown(result, None)):
        assert "one pass: nothing promised" in " ".join(text.split())
        assert "±" not in text
        assert "nan" not in text.lower().replace("nance", "")
