"""Results of rehearsals: every figure recomputed from the files by independent code, and what is said about doubts."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.records import Record, SequenceRecord, StepRecord
from store.database import Store
from store.ingest import Ingest
from store.operating_map.making import make_map
from store.rehearsal.arms import baseline_of
from store.rehearsal.holding import holds
from store.rehearsal.plan import Deadline, Mix, Phase
from store.rehearsal.reading import RehearsalError
from store.rehearsal.records import Outcome
from store.rehearsal.result_records import Estimate, PartFigures, Percentiles, RehearsalResult
from store.rehearsal.results import results
from store.report import report
from store.source import take_in
from tests.store.builders import T0, engine, row
from tests.store.rehearsal_folders import BUSY, CHAT, CODE, QUIET, begin, plan, simulate, write_pass
from tests.store.rehearsal_reference import Reference, averaged, averaged_ratio, rank

EXACT = 1e-9
UNIX = 1e-6
"""Of moments that went through Unix seconds, which a double holds to a quarter of a microsecond."""
SHORT = (QUIET, msgspec.structs.replace(BUSY, seconds=6.0), msgspec.structs.replace(QUIET, seconds=8.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three repeats, the first of them the survey; in each the machine is slower."""
    path = tmp_path_factory.mktemp("rehearsals") / "whole"
    of = plan(arms=("without", "k0", "k4", "proposed"), phases=SHORT, repeats=3)
    simulate(path, of, proposal=[(1, 4, 4), (5, 32, 0)], slower=lambda repeat: 1.2 - 0.1 * repeat, tax=1.1)
    return path


@pytest.fixture(scope="module")
def result(folder: Path) -> RehearsalResult:
    return results(folder)


def agrees(part: PartFigures, reference: Reference, baseline: str) -> None:
    """Every figure of a part is what the plain code makes of the files."""
    where = part.arm, part.phase, part.workload
    requests = reference.pooled(*where)
    assert part.requests == len(requests)
    assert part.misses == sum(not reference.good(one) for one in requests)
    assert sum(part.errors.values()) == sum(
        one.get("error") is not None or one.get("ended") is None for one in requests
    )
    for name, values in reference.latencies(*where).items():
        close_percentiles(getattr(part, name), values, UNIX if name == "waiting" else EXACT)
    place = part.phase, part.workload
    for figure, of in (
        ("throughput", lambda made: reference.throughput(made, *place, good=False)),
        ("goodput", lambda made: reference.throughput(made, *place, good=True)),
        ("busy", lambda made: reference.busy(made, *place)),
    ):
        close(getattr(part, figure), averaged(list(reference.by_repeat(part.arm, of).values())))
    if part.arm == baseline:
        assert part.gain is None
        assert part.speedup is None
    else:
        gains = reference.gain(part.arm, baseline, lambda made: reference.busy(made, *place))
        close(part.gain, averaged_ratio(gains))
        close(part.speedup, averaged_ratio(reference.speedups(part.arm, baseline, *place)))
    for name, value in reference.acceptance(*where).items():
        assert (getattr(part.drafting, name) if part.drafting else None) == pytest.approx(value, rel=1e-8)


def close_percentiles(found: Percentiles | None, values: list[float], within: float) -> None:
    assert (found.n if found else 0) == len(values)
    for percent in (50, 90, 99):
        assert (getattr(found, f"p{percent}") if found else None) == pytest.approx(rank(values, percent), abs=within)


def close(found: Estimate | None, expected: tuple[float, float | None, float | None] | None) -> None:
    assert ((found.value, found.low, found.high) if found else None) == pytest.approx(expected, rel=EXACT, abs=EXACT)


def test_every_figure_is_recomputed_from_the_files(folder: Path, result: RehearsalResult) -> None:
    reference = Reference(folder)
    assert len(result.parts) == 4 * 4 * 3
    for part in result.parts:
        agrees(part, reference, "without")
    assert any(part.misses for part in result.parts)


MIXES = (
    msgspec.structs.replace(CODE, deadline=Deadline(e2e=2.0, ttft=0.4)),
    CHAT,
    Mix(name="none", share=0.0, prompts="p", max_tokens=(1,)),
)
TWINS = tuple(Phase(name=name, seconds=seconds, rate=1) for name, seconds in (("a", 5.0), ("b", 3.0), ("a", 4.0)))


def hostile_pass(random: Random, arm: str, repeat: int, requests: int) -> tuple[list[Outcome], list[Record], float]:
    """Errors, answers without tokens, answers of one, ties, requests that never ended, and somebody else's rows."""
    start, ks = T0 + 1000 * repeat + 100 * len(arm), int(arm[1:]) if arm != "without" else 0
    outcomes: list[Outcome] = []
    records: list[Record] = [engine(ts=start - 1)]
    same = Random(repeat)  # what is drawn is the same for every arm
    for number in range(requests):
        phase, workload = same.randrange(3), same.choice(("code", "chat"))
        at = sum(one.seconds for one in TWINS[:phase]) + same.choice((0.0, 0.5, same.random() * 2))
        kind = random.choice(("whole", "whole", "whole", "none", "one", "http 503", "hung", "cut"))
        tokens = {"none": 0, "one": 1, "http 503": 0}.get(kind, random.randrange(2, 30))
        first = None if kind in ("none", "http 503", "hung") else at + random.choice((0.1, 0.3, random.random()))
        ended = None if kind == "hung" else (first or at) + random.choice((0.5, random.random() * 3))
        name = f"cmpl-{arm}{repeat}x{number}"
        outcomes.append(
            Outcome(
                id=f"q{number}", at=at, phase=phase, workload=workload, sent=at + 0.002,
                first_token=first, ended=ended, request=None if kind == "http 503" else name,
                output_tokens=tokens, error=kind if kind == "http 503" else "timeout" if kind == "cut" else None,
            )
        )  # fmt: skip
        if kind != "http 503":
            records.append(
                SequenceRecord("e0", f"s{number}", start, outcomes[-1].workload, request=f"{name}-0-0a1b2c3d")
            )
    records.append(SequenceRecord("e0", "other", start, random.choice(("else", None))))
    moment = 0.0
    for number in range(1, 3 * requests):
        moment += random.choice((0.05, 0.1, 1.0)) * (0.5 + random.random())
        seqs = [one.seq for one in records if isinstance(one, SequenceRecord)]
        rows = []
        for seq in random.sample(seqs, min(len(seqs), random.randrange(1, 5))):
            drafted = random.randrange(ks + 1)
            prefill = random.random() < 0.2
            rows.append(
                row(seq, d=0, a=0, e=1, k=0, cause="prefill") if prefill
                else row(seq, d=drafted, a=random.randrange(drafted + 1), k=ks)
            )  # fmt: skip
        records.append(
            StepRecord(
                "e0",
                number,
                number,
                round(start + moment, 6),
                random.randrange(30_000, 60_000) / 1000,
                ks,
                ks,
                len(rows),
                0,
                rows,
            )  # whole microseconds, as engines record them
        )
    last = max([moment, *(one.ended for one in outcomes if one.ended is not None)])
    return outcomes, records, last if random.random() < 0.5 else last * 0.9


def hostile(folder: Path, seed: int, requests: int) -> None:
    random = Random(seed)
    arms = random.choice((("without", "k0", "k2"), ("k0", "k3"), ("k2",)))
    begin(folder, plan(arms=arms, phases=TWINS, mix=MIXES, repeats=2))
    number = 0
    for repeat in (1, 2):
        for arm in arms:
            number += 1
            outcomes, records, end = hostile_pass(random, arm, repeat, requests)
            start = records[0].ts + 1
            write_pass(folder, number, arm, repeat, outcomes, records, end, start=start, whole=random.random() < 0.9)


@given(st.integers(0, 2**32), st.integers(1, 9))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_so_it_is_with_errors_ties_and_strangers(tmp_path_factory: Any, seed: int, requests: int) -> None:
    folder = tmp_path_factory.mktemp("hostile") / "one"
    hostile(folder, seed, requests)
    reference = Reference(folder)
    if not reference.passes:
        with pytest.raises(RehearsalError, match="no pass"):
            results(folder)
        return
    found = results(folder)
    assert found.baseline == baseline_of(found.arms)
    for part in found.parts:
        agrees(part, reference, found.baseline)
    msgspec.json.decode(msgspec.json.encode(found), type=RehearsalResult)
    assert all(map(isfinite, numbers(msgspec.to_builtins(make_map(folder)))))


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from numbers(one)


def test_acceptance_is_what_a_report_of_the_same_trace_shows(folder: Path, result: RehearsalResult) -> None:
    (path,) = folder.glob("passes/*-k4-r2/trace.jsonl.zst")
    with Store.memory() as store:
        take_in(path, Ingest(store))
        shown = {one.workload: one for one in report(store.connection, source="k4", by=["workload"]).buckets}
    one = plan(arms=("k4",), phases=SHORT)
    alone = folder.parent / "alone"
    begin(alone, one)
    (made,) = folder.glob("passes/*-k4-r2")
    (alone / "passes").mkdir()
    (alone / "passes" / made.name).symlink_to(made)
    found = results(alone)
    for workload, figures in shown.items():
        part = found.part("k4", None, workload)
        assert part is not None
        assert part.drafting is not None
        assert figures.k_histogram == part.drafting.k_mix
        for name in ("alpha", "alpha_low", "alpha_high", "mean_acceptance_length", "waste_ratio", "decode_rows", "few"):
            assert getattr(part.drafting, name) == getattr(figures, name)


def test_phases_of_one_name_are_told_apart_by_their_place(result: RehearsalResult) -> None:
    assert [one.label for one in result.phases] == ["quiet (1)", "busy", "quiet (3)"]
    assert [one.start for one in result.phases] == [0.0, 20.0, 26.0]


def test_the_spec_tax_is_found_at_equal_load(result: RehearsalResult) -> None:
    assert result.spec_tax is not None
    assert result.spec_tax.step_time is not None
    assert result.spec_tax.step_time.value == pytest.approx(1.1, rel=0.02)


def test_the_fixed_arm_is_chosen_on_the_survey_and_compared_on_the_rest(result: RehearsalResult) -> None:
    quiet = next(one for one in result.holding if one.phase == 0)
    assert (quiet.best, quiet.worst) == ("k4", "k0")
    assert [repeat for repeat, _ in quiet.against_best.by_repeat] == [2, 3]
    assert quiet.against_best.value == pytest.approx(1.0, abs=0.1)
    assert quiet.against_worst is not None
    assert quiet.against_worst.value > 1.3


def test_an_arm_that_lets_requests_pile_up_gains_nothing_by_it(tmp_path: Path) -> None:
    """k4 hands its backlog of the busy phase on to the quiet one: many tokens/s there, and late answers."""
    of = plan(arms=("k0", "k4", "proposed"), repeats=2, phases=(Phase(name="busy", seconds=15.0, rate=7.0), QUIET))
    simulate(tmp_path, of, proposal=[(1, 4, 4), (5, 32, 0)])
    quiet = next(one for one in results(tmp_path).holding if one.phase == 1)
    assert quiet.best == "k4"
    assert quiet.busy is not None
    assert quiet.busy.value < 0.9
    assert quiet.e2e is not None
    assert quiet.e2e.value > 1.2
    assert quiet.against_best.value > 0.97
    assert quiet.holds is None


@pytest.mark.parametrize(
    ("value", "high", "verdict"),
    [(0.94, 0.97, True), (0.94, 0.96, False), (0.92, 1.2, False), (1.1, None, None), (0.9, None, False)],
    ids=["reaches", "short", "low", "once", "once-low"],
)  # fmt: skip
def test_an_arm_holds_at_93_percent_with_an_interval_that_reaches_97(
    value: float, high: float | None, verdict: bool | None
) -> None:
    assert holds(Estimate(value=value, low=None if high is None else 0.5, high=high)) is verdict


def test_one_pass_has_no_bounds_and_promises_nothing(tmp_path: Path) -> None:
    simulate(tmp_path, plan(arms=("k0", "k2"), phases=SHORT[1:2]))
    found = results(tmp_path)
    part = found.part("k2")
    assert part is not None
    assert part.gain is not None
    assert part.gain.low is None
    assert any("nothing promised" in one for one in found.unknown)
    assert any("K = 0, which still pays" in one for one in found.unknown)
    assert found.warnings == []


def test_a_late_generator_and_other_clients_are_warned_of(tmp_path: Path) -> None:
    begin(tmp_path, plan(arms=("k0",), phases=TWINS))
    outcomes = [
        Outcome(id=f"q{n}", at=n * 0.1, phase=0, workload="code", sent=n * 0.1 + 0.2, first_token=n * 0.1 + 0.5,
                ended=n * 0.1 + 1, output_tokens=3)
        for n in range(20)
    ]  # fmt: skip
    write_pass(tmp_path, 1, "k0", 1, outcomes, [engine()], 5.0, start=T0, others=2)
    said = results(tmp_path).warnings
    assert "200 ms late" in said[0]
    assert "other clients" in said[1]
    assert "no step of its engine" in said[2]


def test_a_pass_counts_once_and_only_when_it_came_to_its_end(tmp_path: Path) -> None:
    begin(tmp_path, plan(arms=("k0",), phases=TWINS, repeats=2))
    one = Outcome(id="a", at=0.5, phase=0, workload="code", sent=0.5, first_token=1.0, ended=2.5, output_tokens=9)
    write_pass(tmp_path, 1, "k0", 1, [one], [engine()], 5.0, start=T0)
    write_pass(tmp_path, 2, "k0", 1, [one, msgspec.structs.replace(one, id="b")], [engine()], 5.0, start=T0 + 9)
    write_pass(tmp_path, 3, "k0", 2, [one], [engine()], 5.0, start=T0 + 99, whole=False)
    found = results(tmp_path)
    assert [(made.number, made.repeat) for made in found.passes] == [(2, 1)]
    part = found.part("k0")
    assert part is not None
    assert part.requests == 2
    assert "1 of 2 passes were not made" in found.unknown[0]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("rehearsal.json", None, "no rehearsal"),
        ("rehearsal.json", b"{", "rehearsal.json"),
        ("passes/01-k0-r1/pass.json", b"[]", "pass.json"),
        ("passes/01-k0-r1/outcomes.jsonl", None, "outcomes.jsonl: missing"),
        ("passes/01-k0-r1/outcomes.jsonl", b'{"id":"a","at":0,"phase":9,"workload":"code"}', ":1: phase 9"),
        ("passes/01-k0-r1/outcomes.jsonl", b'\xff\n{"id"', "outcomes.jsonl:1"),
        ("passes/01-k0-r1/trace.jsonl.zst", None, "trace.jsonl.zst: missing"),
        ("passes/01-k0-r1/trace.jsonl.zst", b"no trace", "trace.jsonl.zst"),
    ],
    ids=["none", "broken", "pass", "no-out", "phase", "bytes", "no-trace", "trace"],
)  # fmt: skip
def test_a_broken_folder_names_the_file(tmp_path: Path, file: str, text: bytes | None, words: str) -> None:
    begin(tmp_path, plan(arms=("k0",)))
    write_pass(tmp_path, 1, "k0", 1, [], [engine()], 1.0, start=T0)
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_bytes(text)
    with pytest.raises(RehearsalError, match=words):
        results(tmp_path)
