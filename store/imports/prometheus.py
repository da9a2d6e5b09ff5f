"""vLLM's /metrics (Prometheus text exposition) as counters of each engine, and files of it as observations.

Names: vllm/v1/spec_decode/metrics.py and vllm/v1/metrics/loggers.py of vLLM 0.32. Series of other names are ignored,
the `_created` gauges beside the counters count nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from store.imports.errors import ImportFailed
from store.imports.observations import CounterDifferences, CounterSample, Observation, Observed
from store.imports.texts import decoded, read
from store.imports.times import LATEST, times_in, written

_DRAFT_COUNTERS: Final = {
    "vllm:spec_decode_num_drafts": "drafts",
    "vllm:spec_decode_num_draft_tokens": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens": "accepted_tokens",
}
_COUNTERS: Final = _DRAFT_COUNTERS | {
    "vllm:generation_tokens": "generation_tokens",
    "vllm:prompt_tokens": "prompt_tokens",
}
_GAUGES: Final = {"vllm:num_requests_running": "running", "vllm:num_requests_waiting": "waiting"}
_PER_POSITION: Final = "vllm:spec_decode_num_accepted_tokens_per_pos"
_CREATED: Final = "vllm:spec_decode_num_drafts_created"

COUNT_LIMIT: Final = 2**53
"""Counters are floats: beyond this they skip numbers."""
POSITION_LIMIT: Final = 1024
_LINE_LIMIT: Final = 65536
_PARSER_SLIPS: Final = (ValueError, IndexError, KeyError, TypeError, OverflowError)


def parse_exposition(data: bytes, place: str | Path, ts: float) -> list[CounterSample]:
    """What each engine's counters showed, in the order of the engines' names: `e0` for the label `0`, any other label
    as it is.

    Args:
        place: file or address, for errors.
        ts: when it was read, Unix seconds.

    Raises:
        ImportFailed: it is no text exposition, not vLLM's, or a count in it can't be one; names the line.
    """
    engines: dict[str, dict[str, Any]] = {}
    for line, sample in _samples(decoded(data, place), place):
        field, value = _meaning(sample, place, line)
        if field is None:
            continue
        label = sample.labels.get("engine", "0")
        facts = engines.setdefault(_name(label), {})
        if field in facts:
            raise ImportFailed(
                place, line, f"a second series {sample.name} of the engine {label}: give the /metrics of one server"
            )
        facts[field] = value
        if name := sample.labels.get("model_name"):
            facts.setdefault("model", name)
    if not engines:
        raise ImportFailed(place, None, "no series of vLLM in it: give what a vLLM server answers under /metrics")
    return [_counter_sample(engine, engines[engine], place, ts) for engine in sorted(engines)]


def read_dumps(files: Sequence[Path], at: Sequence[float] = (), zone: tzinfo | None = None) -> Observed:
    """Files that each hold one answer of /metrics, in any order, as observations between consecutive ones.

    Args:
        at: the time of each file, Unix seconds, in the order of `files`; else each is taken from the file's name in one
            of the forms of `store.imports.times`.
        zone: of times in names that name none; None is local time.

    Raises:
        ImportFailed: a file can't be read, has no time or another's, or there is only one.
    """
    if at and len(at) != len(files):
        raise ImportFailed(files[0], None, f"{len(at)} times for {len(files)} files: give --at once for each, or never")
    dated = sorted(zip(at or [_time_of(file, zone) for file in files], files, strict=True))
    _check_times(dated)
    differences = CounterDifferences()
    observations: list[Observation] = []
    notes: list[str] = []
    seen: dict[str, int] = {}
    mute: dict[str, None] = {}
    for ts, file in dated:
        samples = parse_exposition(read(file), file, ts)
        seen |= {sample.engine: seen.get(sample.engine, 0) + 1 for sample in samples}
        mute |= {sample.engine: None for sample in samples if not sample.speculative}
        found = differences.take(samples)
        observations += found.observations
        notes += found.notes
    notes += [f"{engine} shows no draft counters: it runs without speculation" for engine in mute]
    notes += [f"{engine} is in one file only: nothing to compare it with" for engine in seen if seen[engine] == 1]
    return Observed(observations, notes)


def _samples(text: str, place: str | Path) -> Iterator[tuple[int, Sample]]:
    """Line numbers and samples. One line at a time, so that a broken one can be named."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _LINE_LIMIT:
            raise ImportFailed(place, number, f"longer than {_LINE_LIMIT} characters: this is no Prometheus text")
        try:
            for family in text_string_to_metric_families(line):
                yield from ((number, sample) for sample in family.samples)
        except _PARSER_SLIPS as error:
            shown = line.strip()[:80]
            raise ImportFailed(
                place, number, f"not Prometheus text: {shown!r}: give what the server answers under /metrics"
            ) from error


def _meaning(sample: Sample, place: str | Path, line: int) -> tuple[str | None, Any]:
    """Field and value of a sample; no field for a series that doesn't matter."""
    name = sample.name.removesuffix("_total")
    if name in _COUNTERS:
        return _COUNTERS[name], _count(sample, place, line)
    if name == _PER_POSITION:
        return f"position {_position(sample, place, line)}", _count(sample, place, line)
    if name in _GAUGES:
        return _GAUGES[name], int(sample.value) if 0 <= sample.value <= COUNT_LIMIT else None
    if name == _CREATED:
        return "created", float(sample.value) if 0 < sample.value < LATEST else None
    return None, None


def _name(label: str) -> str:
    return f"e{int(label)}" if _is_number(label) else label


def _is_number(label: str) -> bool:
    return label.isascii() and label.isdigit() and len(label) < 8


def _count(sample: Sample, place: str | Path, line: int) -> int:
    if not 0 <= sample.value <= COUNT_LIMIT or sample.value != int(sample.value):
        raise ImportFailed(place, line, f"{sample.name} is {str(sample.value)[:40]}, which is no count")
    return int(sample.value)


def _position(sample: Sample, place: str | Path, line: int) -> int:
    label = sample.labels.get("position", "")
    if not (_is_number(label) and int(label) < POSITION_LIMIT):
        raise ImportFailed(place, line, f"{sample.name}: the position {label[:40]!r} is no number from 0")
    return int(label)


def _counter_sample(engine: str, facts: dict[str, Any], place: str | Path, ts: float) -> CounterSample:
    missing = [name for name, field in _DRAFT_COUNTERS.items() if field not in facts]
    speculative = len(missing) < len(_DRAFT_COUNTERS)
    if missing and speculative:
        raise ImportFailed(place, None, f"{missing[0]}_total of the engine {engine} is missing: give all of /metrics")
    named = {field: value for field, value in facts.items() if not field.startswith("position ")}
    places = {int(field.split()[1]): value for field, value in facts.items() if field not in named}
    positions = [places.get(position, 0) for position in range(max(places, default=-1) + 1)]
    return CounterSample(
        engine=engine, ts=ts, source=str(place), accepted_per_position=positions, speculative=speculative, **named
    )


def _time_of(file: Path, zone: tzinfo | None) -> float:
    times = times_in(file.name, zone)
    if len(times) == 1:
        return times[0]
    found = "no time" if not times else f"{len(times)} different times"
    raise ImportFailed(
        file, None, f"{found} in its name: name it like metrics-2026-11-29T12-00-01Z.prom or metrics-1796000000.prom,"
        " or give its time with --at",
    )  # fmt: skip


def _check_times(dated: Iterable[tuple[float, Path]]) -> None:
    dated = list(dated)
    for ts, file in dated:
        if not 0 < ts < LATEST:
            raise ImportFailed(file, None, f"{ts:g} is no time in Unix seconds: give another --at")
    for (earlier, first), (later, second) in pairwise(dated):
        if earlier == later:
            raise ImportFailed(second, None, f"of the same time as {first} ({written(later)}): leave one of them out")
    if len(dated) == 1:
        raise ImportFailed(
            dated[0][1], None, "one file shows only totals since the engine began: give two or more, taken one after"
            " the other",
        )  # fmt: skip
