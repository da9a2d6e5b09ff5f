"""One sentence for each alert: what, where, since when, how sure, what changed. Tags are shown as they are."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta, timezone
from typing import Any, get_args

import pytest

from store.figures import BucketKey
from store.judge.alerts import Alert, Cause, Kind
from store.judge.sentence import sentence

AT = 1_790_000_000 // 86_400 * 86_400 + 14 * 3600 + 120.0
DRIFT = {
    "depth": 1, "present": 0.53, "reference": 0.62, "against": "baseline", "fall_points": 9.0, "bound_points": -5.2,
    "n": 97,
}  # fmt: skip


def alert(kind: Kind = "drift", **changed: Any) -> Alert:
    fields: dict[str, Any] = {
        "id": 1, "kind": kind, "severity": "warn", "engine": "e0", "state": "firing", "pending_since": AT,
        "started": AT, "bucket": BucketKey("chat", "0-512", "(0,0.5]", "v"), "evidence": DRIFT,
    }  # fmt: skip
    return Alert(**(fields | changed))


def test_a_drift_says_where_how_far_since_when_and_how_sure() -> None:
    assert sentence(alert()) == (
        "chat 0-512 (0,0.5]: acceptance at depth 1 is 9 points under its 7-day baseline since 14:02 (n 97; bound −5.2)."
        " Mix and version unchanged."
    )


def test_times_are_of_the_zone_that_is_asked_for() -> None:
    assert "since 16:02" in sentence(alert(), timezone(timedelta(hours=2)))


def test_what_changed_is_said_in_place_of_what_did_not() -> None:
    said = sentence(alert("shift", causes=[Cause("version", "model version: drafter a → b", AT)]))
    assert said.endswith("Model version: drafter a → b (14:02).")
    assert "unchanged" not in said


def test_a_shift_says_from_where_to_where() -> None:
    said = sentence(alert("shift", evidence=DRIFT | {"against": "before", "fall_points": 14.25}))
    assert "acceptance at depth 1 fell by 14.2 points, from 62% to 53%, since 14:02" in said


def test_a_pending_alert_does_not_claim_to_be_sure_and_one_that_is_over_says_until_when() -> None:
    pending = sentence(alert(state="pending", started=None))
    assert "the next one will tell" in pending
    assert "unchanged" not in pending, "what changed is looked for when it fires"
    over = sentence(alert(state="resolved", ended=AT + 3600))
    assert "was 9 points under" in over
    assert "from 14:02 to 15:02" in over


def test_speedups_are_factors_with_their_interval() -> None:
    evidence = {"speedup": 0.7712, "speedup_low": 0.75, "speedup_high": 0.79, "floor": 1.5, "cells": 30, "waste": 0.71}
    said = sentence(alert("speedup_floor", bucket=None, evidence=evidence))
    assert said == "engine e0: realised speedup 0.77× is below 1.50× since 14:02 (0.75× to 0.79×; 30 cells)."
    said = sentence(alert("failing_workload", evidence=evidence))
    assert "71% of the draft tokens are wasted" in said
    assert said.endswith("The vanilla lane would spare both.")


def test_a_mismatch_says_all_three_policies_and_why() -> None:
    evidence = {"configured": "schedule:1-4:4", "resolved": "static:4", "executed": 4, "reason": "data parallel size 2"}
    assert sentence(alert("policy_mismatch", bucket=None, evidence=evidence)) == (
        "engine e0: executes K 4, configured is schedule:1-4:4, resolved static:4 (data parallel size 2) since 14:02."
    )


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_has_a_sentence_even_without_evidence(kind: Kind) -> None:
    said = sentence(alert(kind, evidence={}))
    assert said.endswith(".")
    assert "nan" not in said


def test_a_hostile_tag_is_kept_literally() -> None:
    tag = "[bold red]x[/]'; DROP TABLE steps;--"
    assert sentence(alert(bucket=BucketKey(tag, "0-512", "0", "v"))).startswith(f"{tag} 0-512: ")


def test_alerts_and_sentences_load_neither_numpy_nor_duckdb() -> None:
    code = "import sys, store.judge.sentence; print(*{name.split('.')[0] for name in sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not set(out.split()) & {"numpy", "scipy", "duckdb", "textual"}


def test_the_judge_loads_no_duckdb_and_no_scipy_until_it_looks() -> None:
    code = "import sys, store.judge.judge; print(*{name.split('.')[0] for name in sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not set(out.split()) & {"scipy", "duckdb", "textual", "torch"}
