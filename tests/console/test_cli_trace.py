"""`specdeck trace convert` and `cut`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from console.cli.root import root
from store.trace import read_records

DEMO = str(Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst")


def test_convert_goes_through_every_form_and_back(tmp_path: Path) -> None:
    before = DEMO
    for name in ("t.parquet", "t.duckdb", "t.jsonl", "t.jsonl.zst"):
        ran = CliRunner().invoke(root, ["trace", "convert", before, str(tmp_path / name), "--json"])
        assert ran.exit_code == 0, ran.stderr
        assert json.loads(ran.stdout)["path"] == str(tmp_path / name)
        before = str(tmp_path / name)
    assert list(read_records(Path(before))) == list(read_records(Path(DEMO)))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["convert", DEMO, DEMO], "exists; choose another name"),
        (["convert", DEMO, "x.txt"], "name it .jsonl, .jsonl.zst, .parquet, .duckdb"),
        (["convert", DEMO, "nowhere/x.jsonl"], "there is no folder nowhere"),
        (["convert", __file__, "x.jsonl"], "not a JSON object"),
        (["cut", DEMO, "x.jsonl"], "nothing is chosen"),
        (["cut", DEMO, "x.jsonl", "--from", "soon"], "--from soon: 'soon' is no moment: write Unix seconds"),
        (["cut", DEMO, "x.jsonl", "--from", "+60s", "--to", "+30s"], "--from +60s --to +30s: it ends before it begins"),
        (["cut", DEMO, "x.jsonl", "--context", "0-511"], "none of 0-512, 512-2048"),
        (["cut", DEMO, "x.jsonl", "--workload", "nobody"], "it has no step of what was chosen"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(root, ["trace", *arguments])
    assert ran.exit_code == 2
    assert what in ran.stderr
    assert not list(tmp_path.iterdir())


def test_cut_takes_times_from_the_start(tmp_path: Path) -> None:
    out = tmp_path / "cut.parquet"
    assert CliRunner().invoke(root, ["trace", "cut", DEMO, str(out), "--from", "+60s", "--to", "+90s"]).exit_code == 0
    info = json.loads(CliRunner().invoke(root, ["trace", "info", str(out), "--json"]).stdout)
    assert 0 < info["steps"] < 2005
