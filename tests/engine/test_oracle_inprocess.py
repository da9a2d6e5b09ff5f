"""The oracle in process: specdeck's rows equal vLLM's own per-request detail, verification by verification.

Each drafter runs on the real engine in a process of its own (`tests.engine.inprocess`). In process because stop
strings and aborts end in the front end, where the HTTP response carries no detail.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.side_by_side import ONE_CORE

METHODS: tuple[Any, ...] = (
    "ngram", "draft_model", pytest.param("eagle", marks=pytest.mark.long), "eagle3", "custom_class",
)  # fmt: skip
if importlib.util.find_spec("arctic_inference"):  # built from source, so not everywhere
    METHODS += ("suffix",)

pytestmark = pytest.mark.engine

_results: dict[str, dict[str, Any]] = {}


def _run(method: str, model: Path, out: Path) -> dict[str, Any]:
    """What one drafter's process wrote down; run once a session."""
    if method not in _results:
        run = subprocess.run(
            [sys.executable, "-m", "tests.engine.inprocess", method, str(model), str(out)],
            capture_output=True,
            text=True,
            timeout=400,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_USE_AOT_COMPILE": "0"} | ONE_CORE,
            check=False,
        )
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
        _results[method] = json.loads(out.read_text()) | {"method": method}
    return _results[method]


@pytest.fixture(params=METHODS)
def result(request: pytest.FixtureRequest, bundled_model: Path, tmp_path: Path) -> dict[str, Any]:
    return _run(request.param, bundled_model, tmp_path / "result.json")


def _drafted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["drafted"]]


def test_every_verification_of_every_request_equals_vllms_detail(result: dict[str, Any]) -> None:
    compared = 0
    for name, oracle in result["oracle"].items():
        rows = _drafted(result["rows"][name])
        assert [row["drafted"] for row in rows] == oracle["drafted"], name
        assert [row["accepted"] for row in rows] == oracle["accepted"], name
        compared += len(rows)
    assert compared > 60
    assert set(result["rows"]) == set(result["oracle"])


def test_every_token_the_engine_kept_is_in_a_row(result: dict[str, Any]) -> None:
    for name, oracle in result["oracle"].items():
        assert sum(row["emitted"] for row in result["rows"][name]) == oracle["output_tokens"], name


def test_the_hard_endings_really_happened(result: dict[str, Any]) -> None:
    reasons = {name: oracle["reason"] for name, oracle in result["oracle"].items()}
    assert reasons["repeat-abort"] == "abort"
    assert reasons["repeat-stopstring"] == "abort", "a stop string reaches the engine as an abort"
    assert reasons["code-cut"] == "length"
    assert result["preemptions"] > 0


def test_k_changes_are_followed_and_no_row_exceeds_what_was_asked(result: dict[str, Any]) -> None:
    rows = [row for rows in result["rows"].values() for row in rows if row["cause"] != "prefill"]
    assert {1, 2, 4} <= {row["k_asked"] for row in rows}
    for row in rows:
        assert row["drafted"] + row["invalid"] <= row["k_asked"] <= row["k_verify"]
        assert row["accepted"] <= row["drafted"]
        assert row["emitted"] <= row["accepted"] + 1


def test_causes_explain_every_row_that_drafted_less(result: dict[str, Any]) -> None:
    rows = [row for rows in result["rows"].values() for row in rows]
    assert all(row["cause"] != "unknown" for row in rows)
    if result["method"] != "custom_class":
        assert any(row["cause"] == "full" for row in rows)


def test_a_grammar_strikes_drafts_and_the_rows_say_how_many(result: dict[str, Any]) -> None:
    rows = result["rows"]["grammar-list"]
    assert all(word in ("yes", "no", "maybe") for word in result["texts"]["grammar-list"].split(", "))
    struck = [row for row in rows if row["invalid"]]
    assert all(row["cause"] == "grammar" for row in struck if row["drafted"] < row["k_asked"] and row["proposed"] >= 4)
    if result["method"] in ("eagle", "eagle3", "custom_class"):
        assert struck, "a drafter that knows no grammar must have had drafts struck"


def test_sampled_text_under_speculation_is_text(result: dict[str, Any]) -> None:
    text = result["texts"]["chat-sampled"]
    assert sum(character.isascii() for character in text) > 0.9 * len(text)
    assert result["oracle"]["chat-long"]["output_tokens"] == 20, "a seeded request with a chunked prefill finishes"


def test_the_target_as_its_own_drafter_is_always_right_at_temperature_0(bundled_model: Path, tmp_path: Path) -> None:
    result = _run("draft_model", bundled_model, tmp_path / "result.json")
    rows = [row for number in range(6) for row in _drafted(result["rows"][f"long-{number}"])]
    # Batches of other shapes round differently, so a rare near tie may go the other way.
    assert sum(row["accepted"] for row in rows) >= 0.97 * sum(row["drafted"] for row in rows)
