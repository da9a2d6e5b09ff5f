"""The evaluation of a head: its arithmetic against slow references, its turns, its text, and a tiny run for real."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from console.cli.drafter_evaluate import evaluate as command
from engine.drafter.evaluation import acceptance_run, throughput_run
from engine.drafter.evaluation.acceptance import Verification, estimate, measure
from engine.drafter.evaluation.arm_process import verifications
from engine.drafter.evaluation.arms import Block, Done, Served
from engine.drafter.evaluation.evaluate import TINY, table
from engine.drafter.evaluation.heads import HeadError, check
from engine.drafter.evaluation.result import AcceptancePlan, Evaluation, Machine, Plan, ThroughputPlan
from engine.drafter.evaluation.serving import EvaluationError
from engine.drafter.evaluation.throughput import Timed, figures, order, ratio
from engine.drafter.prompts import Prompt
from engine.frames import CAUSE_CODE, COLUMNS, WIRE_VERSION, ArrivedSequence, Frame, PackedStep, pack_columns
from engine.models import ModelPath
from tests.engine.random_head import write_random_head

steps = st.integers(0, 4).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted)))
requests = st.lists(st.lists(steps.filter(lambda step: step[0] > 0), max_size=12), max_size=8)


# From rows to verifications


def _frame(number: int, arrived: list[tuple[int, str]], rows: list[dict[str, int]]) -> Frame:
    sequences = [ArrivedSequence(seq, request, 0.0, None, 0.0, 5, False, "speculative") for seq, request in arrived]
    columns = pack_columns([[row.get(name, 0) for row in rows] for name in COLUMNS])
    step = PackedStep(number, 0.0, 1.0, 4, 4, len(rows), 0, 0, None, 1, "static", len(rows), columns)
    return Frame(WIRE_VERSION, "e0", "boot", number, sequences, step, [])


def test_verifications_are_the_draft_steps_of_each_request() -> None:
    full, prefill = CAUSE_CODE["full"], CAUSE_CODE["prefill"]
    frames = [
        _frame(1, [(7, "0-a1b2c3d4"), (8, "1-00000000")], [{"seq": 7, "cause": prefill}, {"seq": 8, "cause": prefill}]),
        _frame(
            2,
            [],
            [
                {"seq": 7, "drafted": 4, "accepted": 2, "cause": full},
                {"seq": 8, "drafted": 0, "cause": CAUSE_CODE["no_proposal"]},
            ],
        ),
        _frame(
            3, [], [{"seq": 8, "drafted": 1, "accepted": 1, "cause": full}, {"seq": 7, "drafted": 2, "cause": full}]
        ),
        _frame(4, [], [{"seq": 7, "drafted": 3, "accepted": 3, "cause": prefill}]),
        Frame(WIRE_VERSION, "e0", "boot", 5, [], None, []),
    ]
    assert verifications(frames) == {"0": [(4, 2), (2, 0)], "1": [(1, 1)]}


# Acceptance


def _slow(rows: list[list[Verification]], j: int) -> tuple[int, int, int]:
    """(draft steps, with at least j accepted, with j drafted and j - 1 accepted) by counting one by one."""
    flat = [step for steps in rows for step in steps]
    accepted = 0
    reached = 0
    for drafted, taken in flat:
        if taken >= j:
            accepted += 1
        if drafted >= j and taken >= j - 1:
            reached += 1
    return len(flat), accepted, reached


@settings(deadline=None)
@given(requests)
def test_positions_are_counts_of_draft_steps(rows: list[list[Verification]]) -> None:
    found = measure("chat", 4, 0.0, 100, rows)
    assert found.requests == len(rows)
    assert len(found.positions) == 4
    for place, position in enumerate(found.positions):
        draft_steps, accepted, reached = _slow(rows, place + 1)
        assert (position.marginal.over, position.marginal.under) == (accepted, draft_steps)
        assert (position.conditional.over, position.conditional.under) == (accepted, reached)
        assert position.marginal.value == (accepted / draft_steps if draft_steps else None)
        for estimated in (position.marginal, position.conditional):
            _inside(estimated.low, estimated.value, estimated.high)
    draft_steps = found.draft_steps
    if draft_steps:
        expected = 1 + sum(taken for steps in rows for _, taken in steps) / draft_steps
        assert found.length.value == pytest.approx(expected)
        # The chain of the conditional shares is the marginal share, where every draft was as long as asked.
        if all(drafted == 4 for steps in rows for drafted, _ in steps):
            chain = math.prod(position.conditional.value or 0.0 for position in found.positions)
            assert chain == pytest.approx(found.positions[-1].marginal.value or 0.0)
    else:
        assert found.length.value is None


def _inside(low: float | None, value: float | None, high: float | None) -> None:
    if low is not None and value is not None and high is not None:
        assert 0 <= low <= value + 1e-12
        assert value <= high + 1e-12
        assert high <= 1


def test_the_interval_covers_requests_that_differ() -> None:
    """95 % of such intervals hold the true share although the steps of a request are alike."""
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(400):
        under = generator.integers(10, 60, 60)
        over = generator.binomial(under, generator.beta(3, 3, 60))
        found = estimate(list(zip(over.tolist(), under.tolist(), strict=True)))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.5 <= found.high
    assert 0.91 <= covered / 400 <= 0.98


def test_nothing_drafted_is_absent_and_nothing_accepted_is_not_certain() -> None:
    assert estimate([]).value is None
    nothing = estimate([(0, 10), (0, 10)])
    assert nothing.value == 0
    assert nothing.high is not None
    assert nothing.high > 0.5, "two requests tell little"
    assert estimate([(3, 4)]).low is None, "one request can't tell how requests differ"


# Throughput


def test_an_order_is_a_palindrome_that_begins_elsewhere_each_round() -> None:
    assert order(["a", "b", "c"], 0) == ["a", "b", "c", "c", "b", "a"]
    assert order(["a", "b", "c"], 4) == ["b", "c", "a", "a", "c", "b"]


@settings(deadline=None)
@given(st.floats(-0.5, 0.5), st.floats(0.5, 2.0))
def test_a_linear_drift_falls_on_all_arms_alike(drift: float, gain: float) -> None:
    arms = {"none": 1.0, "x": gain, "y": 1.0}
    rounds = []
    for number in range(4):
        seconds = dict.fromkeys(arms, 0.0)
        for place, name in enumerate(order(list(arms), number)):
            seconds[name] += (1 + drift * place / 5) / arms[name]
        rounds.append({name: Timed(200, seconds[name], []) for name in arms})
    found = {one.arm: one for one in figures(4, rounds)}
    assert found["none"].ratio is None
    assert found["x"].ratio is not None
    assert found["x"].ratio.value == pytest.approx(gain)
    assert found["x"].tokens_per_second == pytest.approx(800 / sum(one["x"].seconds for one in rounds))


def test_ratios_are_averaged_as_logarithms() -> None:
    pairs = [1.31, 1.28, 1.44, 1.19, 1.36]
    logs = np.log(pairs)
    low, high = stats.t.interval(0.95, len(pairs) - 1, loc=logs.mean(), scale=stats.sem(logs))
    found = ratio(pairs)
    assert (found.value, found.low, found.high) == pytest.approx((stats.gmean(pairs), np.exp(low), np.exp(high)))
    assert ratio([1.5]).low is None


# The runs, on engines that only count


class CountingEngine:
    """Serves every request at once: with K = k, every draft step has k drafted and one of them accepted."""

    def __init__(self, lengths: dict[str, int], *, seconds: float = 1.0, overdraft: int = 0) -> None:
        self.blocks: list[Block] = []
        self._lengths, self._seconds, self._overdraft = lengths, seconds, overdraft

    def serve(self, block: Block) -> Done:
        self.blocks.append(block)
        served = []
        for ask in block.asks:
            length = min(self._lengths[ask.prompt], ask.sampling["max_tokens"])
            rows = [(block.k + self._overdraft, min(block.k, 1))] * 5 if block.k else []
            served.append(Served(list(range(length)), "", "stop", verifications=rows))
        return Done(served, sum(len(one.tokens) for one in served), self._seconds)


def _prompts(**lengths: int) -> list[Prompt]:
    return [Prompt("code" if name.startswith("code") else "chat", name, name) for name in lengths]


def test_acceptance_asks_every_kind_at_every_length_and_temperature() -> None:
    lengths = {"chat1": 9, "chat2": 20, "chat3": 9, "code1": 30}
    engine = CountingEngine(lengths)
    plan = AcceptancePlan(prompts=2, tokens=16, lengths=(1, 4), temperatures=(0.0, 0.8))
    found = acceptance_run.accept(engine.serve, _prompts(**lengths), plan, lambda line: None)
    assert [(one.kind, one.k, one.temperature) for one in found] == [
        (kind, k, temperature) for temperature in (0.0, 0.8) for k in (1, 4) for kind in ("chat", "code")
    ]
    assert [(one.requests, one.tokens, one.draft_steps) for one in found[:2]] == [(2, 25, 10), (1, 16, 5)]
    assert found[2].length.value == 2
    assert found[2].positions[1].conditional.value == 0


def test_drafts_beyond_what_was_asked_end_an_evaluation() -> None:
    lengths = {"chat1": 9}
    plan = AcceptancePlan(prompts=2, tokens=16)
    with pytest.raises(EvaluationError, match="drafted 2 tokens where 1 were asked"):
        acceptance_run.accept(CountingEngine(lengths, overdraft=1).serve, _prompts(**lengths), plan, lambda line: None)


def test_arms_take_turns_at_the_same_requests_whose_answers_are_long_enough() -> None:
    lengths = {"chat1": 40, "chat2": 7, "chat3": 40, "code1": 40, "code2": 8}
    engines = {
        name: CountingEngine(lengths, seconds=seconds)
        for name, seconds in (("none", 1.0), ("head", 0.5), ("ngram", 2.0))
    }
    plan = ThroughputPlan(rounds=3, tokens=8, batches=(1, 2), turns=1, requests=2)
    serving = {name: engine.serve for name, engine in engines.items()}
    found = throughput_run.race(serving, _prompts(**lengths), plan, lambda line: None)
    assert [(one.batch, one.arm) for one in found[:3]] == [(1, "none"), (1, "K 0"), (1, "K 1")]
    assert len(found) == 12
    ratios = {one.arm: one.ratio.value for one in found if one.batch == 2 and one.ratio is not None}
    assert ratios == pytest.approx({"K 0": 2, "K 1": 2, "K 2": 2, "K 4": 2, "ngram K 4": 0.5})
    timed = engines["none"].blocks[2:]  # after the look for long answers, and the warm-up
    assert len(timed) == 3 * 2 * 2
    assert "chat2" not in {ask.prompt for block in timed for ask in block.asks}
    ngram = engines["ngram"].blocks[1:]
    assert [block.asks for block in ngram] == [block.asks for block in timed], "the same work for every arm"
    assert [block.k for block in engines["head"].blocks[4:10]] == [0, 1, 2, 4, 4, 2]


def test_too_short_answers_are_said() -> None:
    lengths = {"chat1": 3, "code1": 4}
    engines = {name: CountingEngine(lengths).serve for name in ("none", "head", "ngram")}
    with pytest.raises(EvaluationError, match="8 tokens"):
        throughput_run.race(engines, _prompts(**lengths), ThroughputPlan(rounds=1, tokens=8), lambda line: None)


# Text and JSON


def _evaluation() -> Evaluation:
    rows = [[(2, 2), (2, 1), (2, 0)], [(2, 2), (2, 0), (2, 0), (2, 1)]]
    rounds = [
        {"none": Timed(100, 2.0, []), "K 2": Timed(100, seconds, rows), "K 0": Timed(100, 2.1, [])}
        for seconds in (1.5, 1.4, 1.6)
    ]
    return Evaluation(
        date="2026-11-29 21:30",
        machine=Machine("AMD EPYC", 2),
        vllm="0.32.0",
        target="target@1",
        head="head@2",
        method="eagle3",
        plan=Plan("full", AcceptancePlan(2, 16), ThroughputPlan(3, 8)),
        acceptance=(measure("chat", 1, 0.0, 30, [[(1, 1)], [(1, 0)]]), measure("code", 2, 0.8, 30, rows)),
        throughput=(*figures(1, rounds), *figures(16, rounds)),
    )


def test_an_evaluation_survives_json() -> None:
    found = _evaluation()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Evaluation) == found


def test_the_table_has_every_figure_in_its_column() -> None:
    text = table(_evaluation())
    lines = text.splitlines()
    assert "2 cores of AMD EPYC" in text
    heads = next(line for line in lines if line.startswith("kind"))
    assert heads.split("  ")[-1].strip() == "cond 1"
    code = next(line for line in lines if line.startswith("code"))
    assert code.split()[1:5] == ["0.8", "2", "2", "7"]
    assert "1.857" in code, "AL: 1 + 6 / 7"
    assert "0.571" in code, "position 0: 4 of 7"
    assert "0.500" in code, "position 1 after position 0: 2 of 4"
    speculating = next(line for line in lines if line.startswith("K 2"))
    assert speculating.count("66.7 (1.34, 1.13–1.58)") == 2
    assert max(map(len, lines)) <= 140
    assert "Not as served" not in text


def test_a_table_of_one_part_has_only_that() -> None:
    without = msgspec.structs.replace(_evaluation(), throughput=())
    assert "Tokens/s" not in table(without)
    assert "Acceptance on" not in table(msgspec.structs.replace(_evaluation(), acceptance=()))


# Heads that can't be measured


def _model(folder: Path, **config: Any) -> ModelPath:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return ModelPath(str(folder), folder.name, local=True)


def test_a_head_is_refused_by_its_config(tmp_path: Path) -> None:
    target = _model(tmp_path / "target", hidden_size=64, vocab_size=100, architectures=["LlamaForCausalLM"])
    eagle = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64, "vocab_size": 100}
    good = _model(tmp_path / "good", **eagle)
    other = _model(tmp_path / "other", **(eagle | {"hidden_size": 32}))
    assert check(Path(good.path), target) == "eagle3"
    with pytest.raises(HeadError, match="hidden_size"):
        check(Path(other.path), target)
    with pytest.raises(HeadError, match="not an EAGLE head"):
        check(Path(target.path), target)


def test_the_command_names_what_is_wrong_with_a_head(tmp_path: Path, bundled_model: Path) -> None:
    runner = CliRunner()
    missing = runner.invoke(command, [str(tmp_path / "absent")])
    assert missing.exit_code == 2
    assert "no such folder" in missing.stderr
    no_head = runner.invoke(command, [str(bundled_model)])
    assert no_head.exit_code == 2
    assert "not an EAGLE head" in no_head.stderr
    wide = _model(tmp_path / "wide", architectures=["LlamaForCausalLMEagle3"], hidden_size=128, vocab_size=49152)
    (Path(wide.path) / "model.bin").write_bytes(b"weights")
    other = runner.invoke(command, [wide.path])
    assert other.exit_code == 2
    assert "another target" in other.stderr


@pytest.mark.engine
@pytest.mark.long
def test_acceptance_of_a_worthless_head_on_the_real_engine(tmp_path: Path, bundled_model: Path) -> None:
    """The race of three engines is run by the pipeline's test (`tests/path/test_drafter_pipeline.py`)."""
    head = write_random_head(bundled_model, tmp_path / "head", "eagle3")
    result = CliRunner().invoke(command, [str(head), "--quick", "--only", "acceptance", "--json"])
    assert result.exit_code == 0, result.stderr
    found = msgspec.json.decode(result.stdout, type=Evaluation)
    assert found.plan == msgspec.structs.replace(TINY, throughput=None)
    assert found.method == "eagle3"
    assert found.head.startswith("head@")
    assert {(one.kind, one.k, one.temperature) for one in found.acceptance} >= {("chat", 1, 0.0), ("code", 4, 0.8)}
    for one in found.acceptance:
        assert one.requests == 2
        assert one.draft_steps > 10
        assert one.length.value is not None
        assert one.length.value < 1.5, "a random head is no use"
    assert not found.throughput
    assert "left" in result.stderr
