"""Data parallelism: vLLM drops the schedule and has each rank of a dense model believe that it is alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import scheduler
from engine.launch import EngineSpec, command
from engine.models import ModelPath
from engine.recorder import Limits
from engine.records import PolicyMode
from tests.store.builders import engine

SCHEDULE = [[1, 4, 4], [5, 32, 1]]
SPEC = EngineSpec(
    drafter="ngram", data_parallel_size=2, speculative_extra={"num_speculative_tokens_per_batch_size": SCHEDULE}
)
ASKED = PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 32, 1)])


def test_vllm_drops_the_schedule_and_the_engine_says_what_was_asked_for(
    bundled_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.engine.arg_utils import EngineArgs

    argv, env = command(SPEC, tmp_path, ModelPath(str(bundled_model), "m", True), inherit={})
    speculative = json.loads(argv[argv.index("--speculative-config") + 1])
    config: Any = EngineArgs(
        model=str(bundled_model), max_model_len=256, speculative_config=speculative, data_parallel_size=2
    ).create_engine_config()
    assert config.speculative_config.num_speculative_tokens_per_batch_size is None
    for name in ("SPECDECK_ENGINE", "SPECDECK_DATA_PARALLEL_SIZE", "SPECDECK_SCHEDULE", "SPECDECK_HARDWARE"):
        monkeypatch.setenv(name, env[name])
    record = scheduler.engine_record(config)
    assert (record.configured, record.resolved.mode, record.resolved.k) == (ASKED, "static", 4)
    assert record.resolved.reason == "data parallel size 2: vLLM drops the schedule and drafts its maximum"
    assert (record.engine, record.data_parallel_size, record.batch_k) == ("e0", 2, "fixed")
    assert record.hardware == env["SPECDECK_HARDWARE"] != ""

    config.parallel_config.data_parallel_index = 1  # as the process of the second rank begins
    config.parallel_config.reconfigure_for_independent_dp_rank()
    assert config.parallel_config.data_parallel_size == 1
    rank = scheduler.engine_record(config)
    assert (rank.engine, rank.data_parallel_size, rank.batch_k, rank.resolved) == ("e0-1", 2, "fixed", record.resolved)
    monkeypatch.delenv("SPECDECK_DATA_PARALLEL_SIZE")
    assert scheduler.engine_record(config).data_parallel_size == 2, "also where specdeck did not launch it"


def test_only_a_data_parallel_launch_says_what_vllm_forgets(tmp_path: Path) -> None:
    target = ModelPath("/models/m", "m", True)
    stale = {"SPECDECK_SCHEDULE": "[[1, 8, 1]]", "SPECDECK_DATA_PARALLEL_SIZE": "4"}
    for spec, ranks, schedule in ((EngineSpec(drafter="ngram"), "1", ""), (SPEC, "2", json.dumps(SCHEDULE))):
        _, env = command(spec, tmp_path, target, inherit=stale)
        assert (env["SPECDECK_DATA_PARALLEL_SIZE"], env["SPECDECK_SCHEDULE"]) == (ranks, schedule)


@pytest.mark.parametrize("text", ["no json", "[[1, 4]]", "7", '{"a": 1}'])
def test_a_schedule_that_is_none_ends_no_engine(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SPECDECK_SCHEDULE", text)
    assert scheduler._asked_for() is None


def test_all_ranks_of_an_engine_hear_its_one_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setenv("SPECDECK_ENGINE", "e0")
    monkeypatch.setenv("SPECDECK_SOCKET", str(tmp_path / "telemetry"))
    monkeypatch.setattr(scheduler, "Telemetry", lambda path, topic, *_: heard.append(topic))
    for name in ("e0", "e0-1"):
        scheduler._watch(engine(engine=name), Limits(4, 256, 64, 64, 4, 256, False))
    assert heard == ["e0", "e0"]
