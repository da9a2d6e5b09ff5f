"""The figures of a rehearsal from its files once more, as plainly as they are defined: lists and sums, and no function
of the product."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import zstandard
from scipy import stats

Json = dict[str, Any]


class Reference:
    """`arm`, `phase` (None: all) and `workload` (None: all) select what each figure is of."""

    def __init__(self, folder: Path) -> None:
        self.rehearsal = json.loads((folder / "rehearsal.json").read_text())
        self.plan = self.rehearsal["plan"]
        self.passes: list[Json] = []
        for path in sorted((folder / "passes").iterdir()):
            if not (path / "pass.json").exists():
                continue
            made = json.loads((path / "pass.json").read_text())
            made["outcomes"] = [json.loads(line) for line in (path / "outcomes.jsonl").read_text().splitlines()]
            with zstandard.open(path / "trace.jsonl.zst", "rb") as file:
                text = io.TextIOWrapper(io.BytesIO(file.read()), "utf-8").read()
            made["records"] = [json.loads(line) for line in text.splitlines()]
            made["tags"] = {one["seq"]: one.get("workload") for one in made["records"] if one["type"] == "sequence"}
            made["begun"] = first_steps(made)
            self.passes.append(made)

    def of(self, arm: str) -> dict[int, Json]:
        return {one["repeat"]: one for one in self.passes if one["arm"] == arm}

    def window(self, phase: int | None) -> tuple[float, float]:
        lengths = [one["seconds"] for one in self.plan["phases"]]
        return (0.0, sum(lengths)) if phase is None else (sum(lengths[:phase]), sum(lengths[: phase + 1]))

    def requests(self, made: Json, phase: int | None, workload: str | None) -> list[Json]:
        return [
            one for one in made["outcomes"]
            if (phase is None or one["phase"] == phase) and (workload is None or one["workload"] == workload)
        ]  # fmt: skip

    def pooled(self, arm: str, phase: int | None, workload: str | None) -> list[Json]:
        return [one for made in self.of(arm).values() for one in self.requests(made, phase, workload)]

    def good(self, one: Json) -> bool:
        limits = next(mix for mix in self.plan["mix"] if mix["name"] == one["workload"]).get("deadline", {})
        if not whole(one):
            return False
        first = one["ended"] if one.get("first_token") is None else one["first_token"]
        if limits.get("e2e") is not None and one["ended"] - one["at"] > limits["e2e"]:
            return False
        if limits.get("ttft") is not None and first - one["at"] > limits["ttft"]:
            return False
        pace = tpot(one)
        return not (limits.get("tpot") is not None and pace is not None and pace > limits["tpot"])

    def latencies(self, arm: str, phase: int | None, workload: str | None) -> dict[str, list[float]]:
        requests = self.pooled(arm, phase, workload)
        waits = []
        for made in self.of(arm).values():
            begun = made["begun"]
            for one in self.requests(made, phase, workload):
                if one.get("request") in begun:
                    waits.append(max(0.0, begun[one["request"]] - (made["start"] + one["at"])))
        return {
            "e2e": [one["ended"] - one["at"] for one in requests if whole(one)],
            "ttft": [one["first_token"] - one["at"] for one in requests if one.get("first_token") is not None],
            "tpot": [pace for one in requests if (pace := tpot(one)) is not None],
            "waiting": waits,
        }

    def throughput(self, made: Json, phase: int | None, workload: str | None, *, good: bool) -> float | None:
        start, end = self.window(phase)
        end = max([end, *(one["ended"] for one in self.requests(made, phase, None) if whole(one))])
        requests = self.requests(made, phase, workload)
        if not requests:
            return None
        counted = [one for one in requests if (self.good(one) if good else whole(one))]
        return float(sum(one.get("output_tokens", 0) for one in counted) / (end - start))

    def busy(self, made: Json, phase: int | None, workload: str | None) -> float | None:
        tokens, seconds = 0, 0.0
        for step in self.steps(made, phase):
            rows = [row for row in step["rows"] if workload is None or made["tags"].get(row[0]) == workload]
            if rows or workload is None:
                tokens += sum(row[7] for row in rows)
                seconds += step["duration_ms"] / 1000
        return tokens / seconds if tokens else None

    def steps(self, made: Json, phase: int | None) -> list[Json]:
        start, end = self.window(phase)
        last = made["end"] - made["start"] if phase is None else end
        return [
            one for one in made["records"]
            if one["type"] == "step" and start < one["ts"] - made["start"] <= last and one["ts"] <= made["end"]
        ]  # fmt: skip

    def acceptance(self, arm: str, phase: int | None, workload: str | None) -> dict[str, float | None]:
        rows = []
        ours = {mix["name"] for mix in self.plan["mix"]}
        for made in self.of(arm).values():
            for step in self.steps(made, phase):
                for row in step["rows"]:
                    tag = made["tags"].get(row[0])
                    if tag in ours and workload in (None, tag) and row[9] != "prefill":
                        rows.append(row)
        draft = [row for row in rows if row[4] > 0]
        drafted, accepted = sum(row[4] for row in draft), sum(row[6] for row in draft)
        return {
            "alpha": sum(row[6] / row[4] for row in draft) / len(draft) if draft else None,
            "mean_acceptance_length": 1 + accepted / len(draft) if draft else None,
            "waste_ratio": (drafted - accepted) / drafted if drafted else None,
        }

    def by_repeat(self, arm: str, figure: Any) -> dict[int, float]:
        found = {repeat: figure(made) for repeat, made in self.of(arm).items()}
        return {repeat: value for repeat, value in found.items() if value is not None}

    def gain(self, arm: str, baseline: str, figure: Any) -> list[float]:
        over, under = self.by_repeat(arm, figure), self.by_repeat(baseline, figure)
        return [over[r] / under[r] for r in over if r in under and over[r] > 0 and under[r] > 0]

    def speedups(self, arm: str, baseline: str, phase: int | None, workload: str | None) -> list[float]:
        found = []
        for repeat, made in self.of(arm).items():
            other = self.of(baseline).get(repeat)
            if other is None:
                continue
            theirs = {one["id"]: one for one in self.requests(other, phase, workload) if whole(one)}
            both = [one for one in self.requests(made, phase, workload) if whole(one) and one["id"] in theirs]
            over = sum(theirs[one["id"]]["ended"] - one["at"] for one in both)
            under = sum(one["ended"] - one["at"] for one in both)
            if over > 0 and under > 0:
                found.append(over / under)
        return found


def whole(one: Json) -> bool:
    return one.get("error") is None and one.get("ended") is not None


def tpot(one: Json) -> float | None:
    tokens = one.get("output_tokens", 0)
    if not whole(one) or one.get("first_token") is None or tokens <= 1:
        return None
    return float((one["ended"] - one["first_token"]) / (tokens - 1))


def rank(values: list[float], percent: int) -> float | None:
    """The smallest value that `percent` of all don't exceed."""
    if not values:
        return None
    return next(
        value for value in sorted(values) if 100 * sum(other <= value for other in values) >= percent * len(values)
    )


def first_steps(made: Json) -> dict[str, float]:
    """By the id that the client knows: vLLM puts the number of the prompt and eight characters behind it."""
    ids = {
        one["seq"]: one["request"].rsplit("-", 2)[0]
        for one in made["records"] if one["type"] == "sequence" and one.get("request")
    }  # fmt: skip
    found: dict[str, float] = {}
    for step in (one for one in made["records"] if one["type"] == "step"):
        for row in step["rows"]:
            if row[0] in ids:
                begun = step["ts"] - step["duration_ms"] / 1000
                found[ids[row[0]]] = min(begun, found.get(ids[row[0]], math.inf))
    return found


def averaged(values: list[float]) -> tuple[float, float | None, float | None] | None:
    """Mean and Student's t bounds of amounts."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None, None
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    half = stats.t.ppf(0.975, len(values) - 1) * error
    return mean, max(0.0, mean - half), mean + half


def averaged_ratio(values: list[float]) -> tuple[float, float | None, float | None] | None:
    """The same of ratios, on their logarithms."""
    logs = [math.log(value) for value in values]
    if not logs:
        return None
    mean = math.fsum(logs) / len(logs)
    if len(logs) < 2:
        return math.exp(mean), None, None
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1) / len(logs))
    half = stats.t.ppf(0.975, len(logs) - 1) * error
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
