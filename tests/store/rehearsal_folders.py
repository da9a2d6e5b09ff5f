"""Folders of rehearsals as the command leaves them, from a small engine with a known step time: passes, outcomes,
traces. Whatever is drawn is the same for every arm of a repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from engine.records import FinishRecord, PolicyMode, Record, Row, SequenceRecord, StepRecord
from engine.schedule import lookup, parse_schedule
from store.operating_map.fingerprint import Fingerprint
from store.rehearsal.plan import WITHOUT, Deadline, Mix, Phase, Plan, fixed_k
from store.rehearsal.records import Outcome, Pass, Rehearsal
from store.trace import TraceWriter
from tests.engine.deciding_simulator.surface import Surface
from tests.store.builders import T0, engine

MOST = 32

QUIET = Phase(name="quiet", seconds=20.0, rate=0.4)
BUSY = Phase(name="busy", seconds=30.0, rate=2.5)
CODE = Mix(name="code", share=0.6, prompts="code", max_tokens=(40, 60), deadline=Deadline(e2e=1.5, ttft=1.0))
CHAT = Mix(name="chat", share=0.4, prompts="chat", max_tokens=(20, 30), deadline=Deadline(tpot=0.08))
ACCEPTS = {"code": 0.85, "chat": 0.35}
"""Probability that the next draft token is accepted."""

FINGERPRINT = Fingerprint(
    model_version="target | drafter | ngram | vllm 0.32.0", vllm="0.32.0", hardware="a processor, 2 threads",
    topology="1/1/1", max_k=8, max_num_seqs=MOST,
)  # fmt: skip


def plan(**changed: Any) -> Plan:
    fields: dict[str, Any] = {
        "name": "quick", "arms": ("k0", "k2", "k4"), "mix": (CODE, CHAT), "phases": (QUIET, BUSY, QUIET),
        "repeats": 1, "survey": 1, "seed": 7, "fallback_test": False,
    }  # fmt: skip
    return Plan(**(fields | changed))


@dataclass
class Drawn:
    id: str
    at: float
    phase: int
    workload: str
    tokens: int


@dataclass
class Being:
    """A request in the engine."""

    drawn: Drawn
    random: Random
    made: int = 0
    first: float | None = None


def drawn(of: Plan, repeat: int) -> list[Drawn]:
    random = Random(f"{of.seed}/{repeat}")
    found: list[Drawn] = []
    begin = 0.0
    for place, phase in enumerate(of.phases):
        at = begin + random.expovariate(phase.rate)
        while at < begin + phase.seconds:
            mix = random.choices(of.mix, [one.share for one in of.mix])[0]
            found.append(Drawn(f"r{len(found)}", at, place, mix.name, random.choice(mix.max_tokens)))
            at += random.expovariate(phase.rate)
        begin += phase.seconds
    return found


def k_of(arm: str, proposal: Sequence[tuple[int, int, int]] | None) -> Callable[[int], int]:
    fixed = fixed_k(arm)
    if arm == WITHOUT or fixed is not None:
        return lambda running: fixed or 0
    schedule = parse_schedule(proposal or [(1, MOST, 0)])
    return lambda running: lookup(schedule, running)


@dataclass
class Made:
    outcomes: list[Outcome] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    end: float = 0.0


def run(
    requests: Sequence[Drawn], k_of: Callable[[int], int], *, start: float, surface: Surface, seed: str,
    speed: float = 1.0, prefix: str = "", most: int = MOST,
) -> Made:  # fmt: skip
    """One pass. `speed`: of the machine in it; `surface`: milliseconds of a step at that speed 1."""
    noise = Random(seed)
    made = Made()
    configured = PolicyMode(mode="static", k=k_of(1))
    made.records.append(engine(ts=start - 1, max_num_seqs=most, configured=configured, resolved=configured))
    queue, running, now, number = list(requests), list[Being](), 0.0, 0
    while queue or running:
        if not running:
            now = max(now, queue[0].at + 0.003)
        fresh = [one for one in queue if one.at + 0.002 <= now][: most - len(running)]
        for one in fresh:
            queue.remove(one)
            made.records.append(
                SequenceRecord(
                    "e0",
                    one.id,
                    start + now,
                    prefix + one.workload,
                    prompt_tokens=50,
                    request=f"cmpl-{seed.replace('/', '')}{one.id}-0-0123abcd",
                )
            )
        beings = [*running, *(Being(one, Random(f"{seed}/{one.id}")) for one in fresh)]
        k = k_of(len(beings))
        rows = [_row(being, k) for being in beings]
        tokens = sum(1 + row.drafted for row in rows)
        ms = float(surface.ms(len(rows), tokens, k, sum(row.context for row in rows))) + 10.0 * len(fresh)
        seconds = ms / 1000 / speed * (1 + surface.noise * (noise.random() - 0.5))
        now, number = round(now + seconds, 6), number + 1  # records are of whole microseconds
        made.records.append(
            StepRecord(
                "e0",
                number,
                number,
                start + now,
                round(seconds * 1000, 3),
                k,
                k,
                len(rows),
                len(queue),
                rows,
                prefill_tokens=50 * len(fresh),
                policy=1,
            )
        )
        running = []
        for being, row in zip(beings, rows, strict=True):
            being.first = now + 0.001 if being.first is None else being.first
            being.made += row.emitted
            if being.made < being.drawn.tokens:
                running.append(being)
                continue
            made.records.append(FinishRecord("e0", being.drawn.id, start + now, "length", being.made))
            made.outcomes.append(_outcome(being, now + 0.002, seed))
    made.end = now + 0.01
    return made


def _row(being: Being, k: int) -> Row:
    one = being.drawn
    if being.made == 0:
        return Row(one.id, 0, "static", 0, 0, 0, 0, 1, 0, "prefill")
    left = one.tokens - being.made
    accepted = 0
    while accepted < k and being.random.random() < ACCEPTS.get(one.workload, 0.5):
        accepted += 1
    cause = "none" if k == 0 else "full"
    return Row(one.id, k, "static", k, k, 0, accepted, min(accepted + 1, left), 50 + being.made, cause)


def _outcome(being: Being, ended: float, seed: str) -> Outcome:
    one = being.drawn
    return Outcome(
        id=one.id, at=one.at, phase=one.phase, workload=one.workload, sent=one.at + 0.001, first_token=being.first,
        ended=ended, request=f"cmpl-{seed.replace('/', '')}{one.id}", prompt_tokens=50, output_tokens=being.made,
    )  # fmt: skip


def begin(folder: Path, of: Plan, **changed: Any) -> Rehearsal:
    fields: dict[str, Any] = {
        "id": "20260921-140000-quick", "plan": of, "host": "own", "started": T0, "scale": 1.0,
        "fingerprint": FINGERPRINT, "ended": T0 + 3600.0,
    }  # fmt: skip
    rehearsal = Rehearsal(**(fields | changed))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rehearsal.json").write_bytes(msgspec.json.encode(rehearsal))
    return rehearsal


def write_pass(
    folder: Path, number: int, arm: str, repeat: int, outcomes: Iterable[Outcome], records: Iterable[Record],
    end: float, *, start: float, survey: int = 1, others: int = 0, whole: bool = True,
) -> Path:  # fmt: skip
    """`whole`: with its `pass.json`."""
    into = folder / "passes" / f"{number:02d}-{arm}-r{repeat}"
    into.mkdir(parents=True)
    (into / "outcomes.jsonl").write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in outcomes))
    with TraceWriter(into / "trace.jsonl.zst") as out:
        for record in records:
            out.write(record)
    made = Pass(
        number=number, arm=arm, repeat=repeat, stage="survey" if repeat <= survey else "comparison",
        policy=None if arm == WITHOUT else PolicyMode(mode="static", k=fixed_k(arm) or 0), engine="e0", start=start,
        end=start + end, others=others,
    )  # fmt: skip
    if whole:
        (into / "pass.json").write_bytes(msgspec.json.encode(made))
    return into


def simulate(
    folder: Path, of: Plan, *, surface: Surface | None = None, proposal: list[tuple[int, int, int]] | None = None,
    slower: Callable[[int], float] = lambda repeat: 1.0, tax: float = 1.0, **changed: Any,
) -> Rehearsal:  # fmt: skip
    """A whole rehearsal. `slower`: speed of the machine in each repeat; `tax`: of an engine without speculation."""
    rehearsal = begin(folder, of, proposal=proposal, **changed)
    number, clock = 0, T0 + 10.0
    for repeat in range(1, of.repeats + 1):
        arms = [arm for arm in of.arms if repeat > of.survey or arm == WITHOUT or fixed_k(arm) is not None]
        for arm in arms if repeat % 2 else reversed(arms):
            number += 1
            made = run(
                drawn(of, repeat), k_of(arm, proposal), start=clock, surface=surface or Surface(noise=0.1),
                seed=f"{of.seed}/{repeat}/{number}", speed=slower(repeat) * (tax if arm == WITHOUT else 1.0),
                prefix=rehearsal.prefix, most=rehearsal.fingerprint.max_num_seqs,
            )  # fmt: skip
            write_pass(
                folder, number, arm, repeat, made.outcomes, made.records, made.end, start=clock, survey=of.survey
            )
            clock += made.end + 5.0
    return rehearsal
