"""What `specdeck report FILE.jsonl --json` prints for a trace written by hand: every key, its type, and its meaning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from console.cli.root import root
from store.database import Store
from store.ingest import Ingest
from store.source import take_in

TOP: Final = [
    "source", "window", "buckets", "total", "quarantined", "gaps", "frames_lost", "transitions", "mismatches", "notes",
]  # fmt: skip
RATES: Final = (
    "alpha", "alpha_low", "alpha_high", "pooled_acceptance", "conditional_acceptance", "waste_ratio", "drafted_share",
)  # fmt: skip
NUMBERS: Final = [*RATES, *["mean_acceptance_length", "committed_per_step", "tokens_per_second", "speedup"]]
POSITIONS: Final = ["position_marginal", "position_conditional", "position_at_risk"]
HISTOGRAMS: Final = ["k_histogram", "drafted_histogram", "cause_histogram", "limit_histogram"]
NAMES: Final = ["workload", "context", "temperature", "model_version"]
KEYS: Final = {
    *NAMES, "engine", "sequences", "steps", "decode_rows", "drafted", "accepted", "emitted", *NUMBERS,
    "speedup_low", "speedup_high", "speedup_state", *POSITIONS, *HISTOGRAMS, "window", "few", "state", "post_resume",
}  # fmt: skip
T: Final = 1_790_000_000.0
VERSION: Final = "SmolLM2-135M-Instruct | ngram | ngram | vllm 0.32.0"
SCHEDULE: Final = {"mode": "schedule", "schedule": [[1, 4, 4], [5, 32, 1]]}

ENGINE: Final[dict[str, Any]] = {
    "type": "engine", "v": 1, "engine": "e0", "ts": T, "vllm": "0.32.0", "target": "SmolLM2-135M-Instruct",
    "drafter": "ngram", "method": "ngram", "max_k": 4, "batch_k": "free", "max_num_seqs": 32, "data_parallel_size": 1,
    "device": "cpu", "async_scheduling": False, "configured": SCHEDULE, "resolved": SCHEDULE, "hat": "tall",
}  # fmt: skip


def sequence(seq: str, engine: str = "e0", **more: Any) -> dict[str, Any]:
    return {
        "type": "sequence", "engine": engine, "seq": seq, "ts": T + 0.1, "workload": "code", "temperature": 0.0,
        "prompt_tokens": 120, "disable_speculation": False, "lane": "speculative", **more,
    }  # fmt: skip


def step(number: int, rows: list[list[Any]], engine: str = "e0", **more: Any) -> dict[str, Any]:
    return {
        "type": "step", "engine": engine, "frame": number, "step": number, "ts": T + number, "duration_ms": 500.0,
        "k_verify": 4, "k_draft": 4, "running": 3, "waiting": 0, "prefill_tokens": 0, "probe": None, "policy": 3,
        "limit_draft": "schedule", "rows": rows, **more,
    }  # fmt: skip


def drafted(seq: str, d: int, a: int, e: int | None = None, cause: str = "full", context: int = 141) -> list[Any]:
    return [seq, 4, "schedule", d, d, 0, a, a + 1 if e is None else e, context, cause]


TRACE: Final[list[dict[str, Any]]] = [
    ENGINE,
    sequence("a"),
    sequence("b", workload="chat", temperature=0.7),
    sequence("c", workload=None),
    step(1, [["a", 4, "schedule", 0, 0, 0, 0, 1, 0, "prefill"]]),
    step(2, [drafted("a", 4, 2), drafted("b", 4, 4), ["c", 0, "hint", 0, 0, 0, 0, 1, 50, "none"]]),
    step(3, [drafted("a", 2, 2, 3, "token_budget"), drafted("b", 4, 9), drafted("b", 4, 0)]),
    step(4, [drafted("a", 0, 0, 1, "length_limit")], k_draft=1, running=7),
    {"type": "gap", "engine": "e0", "ts": T + 6, "frames_lost": 12, "since": T + 4},
    step(7, [drafted("a", 4, 1, context=600)], k_draft=1, running=7),
    {"type": "finish", "engine": "e0", "seq": "a", "ts": T + 7.5, "reason": "stop", "output_tokens": 64},
]


def written(folder: Path, records: list[dict[str, Any]]) -> Path:
    path = folder / "hand.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def printed(path: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(root, ["report", str(path), "--json", *options])
    assert result.exit_code == 0, result.output
    assert "NaN" not in result.stdout
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return printed(written(tmp_path_factory.mktemp("hand"), TRACE))


def bucket(shown: dict[str, Any], workload: str, context: str = "0-512") -> dict[str, Any]:
    (found,) = [one for one in shown["buckets"] if (one["workload"], one["context"]) == (workload, context)]
    return dict(found)


def test_every_key_is_there_and_no_other(shown: dict[str, Any]) -> None:
    assert list(shown) == TOP
    assert [set(one) for one in (*shown["buckets"], shown["total"])] == [KEYS] * 5
    assert {(one["workload"], one["context"], one["temperature"]) for one in shown["buckets"]} == {
        ("code", "0-512", "0"), ("code", "512-2048", "0"), ("chat", "0-512", "(0.5,1]"), ("untagged", "0-512", "0"),
    }  # fmt: skip
    assert {one["model_version"] for one in shown["buckets"]} == {VERSION}


def test_every_value_has_its_type(shown: dict[str, Any]) -> None:
    for one in (*shown["buckets"], shown["total"]):
        for name in ("sequences", "steps", "decode_rows", "drafted", "accepted", "emitted"):
            assert type(one[name]) is int, name
        for name in NUMBERS:
            assert one[name] is None or type(one[name]) is float, name
        for name in RATES:
            assert one[name] is None or 0 <= one[name] <= 1, name
        for name in POSITIONS:
            assert isinstance(one[name], list), name
            assert all(value is None or 0 <= value <= 1 for value in one[name]), name
        for name in HISTOGRAMS:
            assert all(isinstance(key, str) and type(rows) is int for key, rows in one[name].items()), name
            assert sum(one[name].values()) == one["decode_rows"], name
        assert one["window"] == shown["window"]
        assert type(one["few"]) is bool
        assert one["state"] in ("ok", "few", "blind", "calibrating")
        assert set(one["post_resume"]) == {"steps", "drafted", "accepted", "alpha"}
        assert one["speedup_state"] in ("calibrating", "absent")
        assert (one["speedup"], one["speedup_low"], one["speedup_high"]) == (None, None, None)
    assert {type(shown[name]) for name in ("quarantined", "gaps", "frames_lost")} == {int}
    assert all(isinstance(note, str) for note in shown["notes"])


def test_the_figures_are_those_of_the_rows(shown: dict[str, Any]) -> None:
    code = bucket(shown, "code")
    assert {name: code[name] for name in ("sequences", "steps", "decode_rows", "drafted", "accepted", "emitted")} == {
        "sequences": 1, "steps": 2, "decode_rows": 3, "drafted": 6, "accepted": 4, "emitted": 1 + 3 + 3 + 1,
    }  # fmt: skip
    assert (code["alpha"], code["pooled_acceptance"]) == (0.75, pytest.approx(4 / 6))
    assert (code["conditional_acceptance"], code["mean_acceptance_length"]) == (0.8, 3.0)
    assert (code["committed_per_step"], code["waste_ratio"]) == (pytest.approx(7 / 3), pytest.approx(2 / 6))
    assert code["drafted_share"] == pytest.approx(2 / 3)
    assert code["position_marginal"] == [1.0, 1.0, 0.0, 0.0]
    assert code["position_conditional"] == [1.0, 1.0, 0.0, None]
    assert code["position_at_risk"] == [pytest.approx(2 / 3), 1.0, 0.0, None]
    assert code["k_histogram"] == {"4": 3}
    assert code["drafted_histogram"] == {"0": 1, "2": 1, "4": 1}
    assert code["cause_histogram"] == {"full": 1, "length_limit": 1, "token_budget": 1}
    assert code["limit_histogram"] == {"schedule": 3}
    assert (code["few"], code["state"]) == (True, "few")
    assert code["tokens_per_second"] == pytest.approx(8 / (7 - 0.5 - 2))
    chat = bucket(shown, "chat")
    assert (chat["steps"], chat["alpha"], chat["post_resume"]["steps"]) == (2, 0.5, 0)
    quiet = bucket(shown, "untagged")
    assert (quiet["steps"], quiet["alpha"], quiet["alpha_low"], quiet["waste_ratio"], quiet["state"]) == (
        0, None, None, None, "blind",
    )  # fmt: skip
    assert (quiet["limit_histogram"], quiet["position_marginal"]) == ({"hint": 1}, [])


def test_the_top_level_tells_of_the_whole_file(shown: dict[str, Any]) -> None:
    assert shown["source"].endswith("hand.jsonl")
    assert shown["window"] == {"start": T + 0.5, "end": T + 7}
    assert (shown["quarantined"], shown["gaps"], shown["frames_lost"]) == (1, 1, 12)
    assert any("hat" in note for note in shown["notes"])
    assert (shown["total"]["emitted"], shown["total"]["sequences"], shown["total"]["workload"]) == (17, 3, None)
    (change,) = shown["transitions"]
    assert change == {
        "engine": "e0", "step": 4, "ts": T + 4, "from": 4, "to": 1, "running": 7, "limit": "schedule",
    }  # fmt: skip
    assert shown["mismatches"] == []


def test_a_mismatch_names_both_policies_and_the_k_that_was_executed(tmp_path: Path) -> None:
    resolved = {"mode": "static", "k": 3, "reason": "dropped under data parallelism"}
    dropped = ENGINE | {"resolved": resolved, "data_parallel_size": 2}
    rows = [["a", 3, "static", 3, 3, 0, 1, 2, 141, "full"]]
    shown = printed(written(tmp_path, [dropped, sequence("a"), *(step(n, rows, k_draft=3) for n in range(1, 4))]))
    (mismatch,) = shown["mismatches"]
    assert list(mismatch) == ["engine", "started", "ended", "configured", "resolved", "executed", "reason"]
    assert (mismatch["engine"], mismatch["ended"], mismatch["reason"]) == ("e0", None, resolved["reason"])
    assert type(mismatch["executed"]) is int
    assert mismatch["executed"] == 3
    assert (mismatch["configured"]["mode"], mismatch["resolved"]["mode"]) == ("schedule", "static")
    assert 0 <= mismatch["started"] - T <= 1


COMBINATIONS: Final = [
    "engine", *NAMES, "workload,temperature", "engine,context", "model_version,workload", ",".join(("engine", *NAMES)),
]  # fmt: skip


def test_any_keys_can_be_asked_for_and_the_rest_is_pooled_and_null(tmp_path: Path) -> None:
    other = ENGINE | {"engine": "e1", "target": "other"}
    path = written(tmp_path, [*TRACE, other, sequence("z", "e1"), step(8, [drafted("z", 4, 4)], "e1")])
    whole = printed(path)["total"]
    assert whole["emitted"] == 22
    for by in COMBINATIONS:
        shown = printed(path, "--by", by)
        asked = by.split(",")
        found = [tuple(one[name] for name in asked) for one in shown["buckets"]]
        assert len(set(found)) == len(found)
        for one in shown["buckets"]:
            assert [name for name in ("engine", *NAMES) if one[name] is None] == [
                name for name in ("engine", *NAMES) if name not in asked
            ]  # fmt: skip
        for name in ("steps", "decode_rows", "drafted", "accepted", "emitted"):
            assert sum(one[name] for one in shown["buckets"]) == whole[name]
        assert shown["total"] == whole
    assert {one["workload"] for one in printed(path, "--by", "workload")["buckets"]} == {"code", "chat", "untagged"}


@pytest.mark.parametrize("options", [["--by", "colour"], ["--window", "0"], ["--by", ""]], ids=["key", "span", "none"])
def test_a_question_without_an_answer_is_wrong_usage(tmp_path: Path, options: list[str]) -> None:
    result = CliRunner().invoke(root, ["report", str(written(tmp_path, TRACE)), *options])
    assert result.exit_code == 2


def test_speedups_are_null_only_while_nothing_is_known(tmp_path: Path) -> None:
    plain = [["a", 0, "probe", 0, 0, 0, 0, 1, 141, "none"]]
    spun = [drafted("a", 4, 2)]
    clean = [
        step(n, plain, ts=T + 0.03 * n, duration_ms=30.0, k_verify=0, k_draft=0, limit_draft="probe", probe="k0")
        for n in range(1, 1000)
    ]
    drafts = [step(n, spun, ts=T + 30 + 0.04 * (n - 1000), duration_ms=40.0) for n in range(1000, 2000)]
    shown = printed(written(tmp_path, [ENGINE, sequence("a"), *clean, *drafts]), "--window", "38s")
    (one,) = shown["buckets"]
    assert (one["speedup_state"], one["state"]) == ("ok", "few")
    assert one["speedup"] == pytest.approx(3 * 30 / 40, rel=0.03)
    assert one["speedup_low"] < one["speedup"] < one["speedup_high"]
    prefill = ["a", 4, "max", 0, 0, 0, 0, 1, 0, "prefill"]
    nothing = printed(written(tmp_path, [ENGINE, sequence("a"), step(1, [prefill])]))
    assert (nothing["buckets"][0]["speedup_state"], nothing["buckets"][0]["speedup"]) == ("absent", None)


def test_a_trace_without_steps_has_no_window_and_no_buckets(tmp_path: Path) -> None:
    shown = printed(written(tmp_path, [ENGINE]))
    assert (shown["window"], shown["buckets"], shown["total"]) == (None, [], None)


@pytest.mark.parametrize("name", ["copy.duckdb", "copy.jsonl", "copy.jsonl.zst"])
def test_the_report_of_an_export_of_a_store_file_is_the_same(tmp_path: Path, name: str) -> None:
    with Store.open(tmp_path / "store.duckdb") as store:
        take_in(written(tmp_path, TRACE), Ingest(store))
    result = CliRunner().invoke(root, ["export", str(tmp_path / "store.duckdb"), str(tmp_path / name)])
    assert result.exit_code == 0, result.output
    told = [printed(tmp_path / one) | {"source": "", "notes": []} for one in ("store.duckdb", name)]
    assert told[0] == told[1]
