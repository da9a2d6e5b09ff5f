"""Answers of vLLM's /metrics: what was counted between two of them, whatever restarted, and no figure from a guess."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import prometheus_client
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.imports.errors import ImportFailed
from store.imports.observations import CounterDifferences, CounterSample, Observation
from store.imports.prometheus import parse_exposition, read_dumps
from store.imports.times import times_in
from tests.store.imports_data.builders import counters, dump, exposition

T0 = 1_790_000_000.0


def counts(observation: Observation) -> tuple[int, int, int]:
    return observation.drafts, observation.draft_tokens, observation.accepted_tokens


def samples(text: str, ts: float = T0) -> list[CounterSample]:
    return parse_exposition(text.encode(), "metrics", ts)


def two(folder: Path, before: str, after: str) -> list[Path]:
    return [dump(folder, 0, exposition(before)), dump(folder, 60, exposition(after))]


# Case 8


def test_an_engine_that_restarted_counts_from_nothing_and_is_named(tmp_path: Path) -> None:
    first = exposition(counters("e0", 100, 300, 150), counters("e1", 10, 30, 30))
    second = exposition(counters("e0", 120, 360, 180), counters("e1", 5, 15, 3))
    found = read_dumps([dump(tmp_path, 0, first), dump(tmp_path, 60, second)])
    e0, e1 = found.observations
    assert (e0.engine, counts(e0), e0.restarted) == ("e0", (20, 60, 30), False)
    assert (e1.engine, counts(e1), e1.restarted) == ("e1", (5, 15, 3), True)
    assert {(one.since, one.ts) for one in found.observations} == {(T0, T0 + 60)}
    accepted, drafted = (sum(pair) for pair in ((e0.accepted_tokens, e1.accepted_tokens), (60, 15)))
    assert accepted / drafted == pytest.approx(0.44)
    assert 1 + accepted / (e0.drafts + e1.drafts) == pytest.approx(2.32)
    assert found.notes == ["e1 restarted between 2026-09-21T14:13:20Z and 2026-09-21T14:14:20Z"]


def test_created_gauges_are_not_counts(tmp_path: Path) -> None:
    (sample,) = samples(exposition(counters("0", 1, 2, 1, created=1.79e9)))
    assert (sample.drafts, sample.draft_tokens, sample.accepted_tokens) == (1, 2, 1)


@pytest.mark.parametrize(
    "labels",
    [
        'engine="0",model_name="m",position="{}"',
        'position="{}",engine="0",model_name="m"',
        'model_name="m", position="{}" , engine="0",',
    ],
)
def test_the_position_may_be_any_label_in_any_order(labels: str) -> None:
    lines = [f"vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels.format(n)}}} {9 - n}" for n in (2, 0, 1)]
    (sample,) = samples(exposition(counters("0", 10, 30, 24), *lines))
    assert sample.accepted_per_position == [9, 8, 7]


# Restarts


steps = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(steps, st.booleans()), max_size=12))
def test_what_was_counted_is_told_whatever_restarts_between(
    stretches: list[tuple[list[tuple[int, int]], bool]],
) -> None:
    differences = CounterDifferences()
    totals = (0, 0, 0)
    differences.take([sample_of(0, totals)])
    for place, (drawn, restarts) in enumerate(stretches, 1):
        counted = (len(drawn), sum(d for d, _ in drawn), sum(min(d, a) for d, a in drawn))
        before, totals = totals, tuple(map(int.__add__, (0, 0, 0) if restarts else totals, counted))
        found = differences.take([sample_of(place, totals)])
        if restarts and not any(now < then for now, then in zip(totals, before, strict=True)):
            continue  # nothing shows it
        (one,) = found.observations
        assert (counts(one), one.restarted, len(found.notes)) == (counted, restarts, int(restarts))


def sample_of(place: int, totals: tuple[int, ...]) -> CounterSample:
    drafts, drafted, accepted = totals
    return CounterSample(
        engine="e0", ts=T0 + place, drafts=drafts, draft_tokens=drafted, accepted_tokens=accepted
    )  # fmt: skip


@pytest.mark.parametrize("fallen", ["drafts", "draft_tokens", "accepted", "generation_tokens_total", "positions"])
def test_any_counter_that_fell_says_that_the_engine_restarted(tmp_path: Path, fallen: str) -> None:
    values = {"drafts": 10, "draft_tokens": 30, "accepted": 12, "generation_tokens_total": 40, "positions": (9, 3)}
    after = values | {fallen: (8, 3) if fallen == "positions" else values[fallen] - 1}  # type: ignore[operator]
    (one,) = read_dumps(two(tmp_path, counters("0", **values), counters("0", **after))).observations  # type: ignore[arg-type]
    assert one.restarted
    assert one.generation_tokens == after["generation_tokens_total"]
    assert one.accepted_per_position == list(after["positions"])  # type: ignore[call-overload]
    assert one.drafts == after["drafts"]


def test_counters_created_between_two_dumps_count_from_nothing_though_none_fell(tmp_path: Path) -> None:
    before, after = counters("0", 10, 30, 12, created=T0 - 999), counters("0", 20, 60, 25, created=T0 + 30)
    found = read_dumps(two(tmp_path, before, after))
    assert [(counts(one), one.restarted) for one in found.observations] == [((20, 60, 25), True)]


def test_an_engine_with_fewer_positions_has_restarted_and_one_without_any_says_nothing_of_them(tmp_path: Path) -> None:
    (fewer,) = read_dumps(
        two(tmp_path, counters("0", 10, 40, 5, positions=(5, 0)), counters("0", 20, 80, 9, positions=(9,)))
    ).observations
    assert fewer.restarted
    (silent,) = read_dumps(
        two(tmp_path, counters("0", 10, 40, 5, positions=(5,)), counters("0", 20, 80, 9))
    ).observations
    assert not silent.restarted
    assert silent.accepted_per_position == []


def test_an_engine_that_comes_later_is_counted_from_its_first_dump_on(tmp_path: Path) -> None:
    files = [
        dump(tmp_path, 0, exposition(counters("0", 1, 4, 1))),
        dump(tmp_path, 10, exposition(counters("0", 2, 8, 2), counters("1", 100, 400, 100))),
        dump(tmp_path, 20, exposition(counters("1", 101, 404, 103))),
        dump(tmp_path, 30, exposition(counters("0", 4, 16, 4), counters("2", 7, 28, 7))),
    ]
    found = read_dumps(files)
    assert [(one.engine, one.since - T0, one.ts - T0, one.drafts) for one in found.observations] == [
        ("e0", 0, 10, 1),
        ("e1", 10, 20, 1),
        ("e0", 10, 30, 2),
    ]
    assert found.notes == ["e2 is in one file only: nothing to compare it with"]


def test_a_stretch_that_cannot_be_is_left_out_and_named(tmp_path: Path) -> None:
    found = read_dumps(two(tmp_path, counters("0", 10, 30, 3), counters("0", 12, 36, 30)))
    assert found.observations == []
    assert "left out" in found.notes[0]


def test_a_clock_that_went_back_is_named_and_counting_goes_on() -> None:
    differences = CounterDifferences()
    told = [
        differences.take([CounterSample(engine="e0", ts=ts, drafts=n, draft_tokens=n)])
        for n, ts in enumerate((T0, T0 + 9, T0 - 50, T0 - 40))
    ]
    assert [[one.drafts for one in each.observations] for each in told] == [[], [1], [], [1]]
    assert "clock went back" in told[2].notes[0]


# What the answer of a server holds


def test_a_real_exposition_is_read() -> None:
    """Written by the library that vLLM writes it with, with its names and labels."""
    registry = prometheus_client.CollectorRegistry()
    labels = ["model_name", "engine"]
    model = 'a "b" \\ [bold]\n'

    def counter(name: str, value: float, *more: str) -> None:
        names = [*labels, "position"] if more else labels
        made = registered.setdefault(name, prometheus_client.Counter(name, name, names, registry=None))
        made.labels(model, "0", *more).inc(value)

    registered: dict[str, prometheus_client.Counter] = {}
    counter("vllm:spec_decode_num_drafts", 1e6)
    counter("vllm:spec_decode_num_draft_tokens", 4e6)
    counter("vllm:spec_decode_num_accepted_tokens", 1234567)
    for place, value in enumerate((900_000, 334_567, 0, 0)):
        counter("vllm:spec_decode_num_accepted_tokens_per_pos", value, str(place))
    counter("vllm:generation_tokens", 2.5e6)
    counter("vllm:prompt_tokens", 17)
    for made in registered.values():
        registry.register(made)
    for name, value in (("running", 3), ("waiting", 4)):
        prometheus_client.Gauge(f"vllm:num_requests_{name}", name, labels, registry=registry).labels(model, "0").set(
            value
        )
    (sample,) = parse_exposition(prometheus_client.generate_latest(registry), "metrics", T0)
    assert (sample.engine, sample.model) == ("e0", model)
    assert (sample.drafts, sample.draft_tokens, sample.accepted_tokens) == (1_000_000, 4_000_000, 1_234_567)
    assert sample.accepted_per_position == [900_000, 334_567, 0, 0]
    assert (sample.generation_tokens, sample.prompt_tokens) == (2_500_000, 17)
    assert (sample.running, sample.waiting) == (3, 4)
    assert sample.created is not None


def test_tokens_and_load_are_carried_and_absent_ones_are_absent(tmp_path: Path) -> None:
    others = {"generation_tokens_total": 500, "prompt_tokens_total": 40, "num_requests_running": 3}
    after = others | {"generation_tokens_total": 720, "num_requests_waiting": 2}
    (one,) = read_dumps(two(tmp_path, counters("0", 1, 4, 1, **others), counters("0", 2, 8, 2, **after))).observations
    assert (one.generation_tokens, one.prompt_tokens, one.running, one.waiting) == (220, 0, 3, 2)
    (bare,) = read_dumps(two(tmp_path, counters("0", 1, 4, 1), counters("0", 2, 8, 2))).observations
    assert (bare.generation_tokens, bare.prompt_tokens, bare.running, bare.waiting) == (None, None, None, None)


def test_a_load_that_is_no_number_is_unknown() -> None:
    text = exposition(counters("0", 1, 4, 1, num_requests_running=float("nan"), num_requests_waiting=-1))
    (sample,) = samples(text)
    assert (sample.running, sample.waiting) == (None, None)


def test_labels_stay_what_they_are() -> None:
    engine = "[bold red]x[/]'; DROP TABLE steps;--"
    (sample,) = samples(exposition(counters(engine, 1, 4, 1)))
    assert sample.engine == engine


def test_a_server_without_speculation_drafts_nothing_and_is_named(tmp_path: Path) -> None:
    texts = [f'vllm:generation_tokens_total{{engine="0"}} {tokens}' for tokens in (10, 70)]
    found = read_dumps(two(tmp_path, *texts))
    assert [(counts(one), one.generation_tokens) for one in found.observations] == [((0, 0, 0), 60)]
    assert found.notes == ["e0 shows no draft counters: it runs without speculation"]


def test_marks_and_line_ends_of_other_systems_make_no_difference() -> None:
    text = exposition(counters("0", 1, 4, 1), counters("1", 2, 8, 2))
    plain = samples(text)
    windows = text.replace("\n", "\r\n")
    assert samples(windows) == plain
    for data in (b"\xef\xbb\xbf" + text.encode(), windows.encode("utf-16")):
        assert parse_exposition(data, "metrics", T0) == plain


# Times


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("metrics-1790000000.prom", T0),
        ("1790000000.25.txt", T0 + 0.25),
        ("node1.1790000000.prom", T0),
        ("metrics_2026-09-21T14:13:20Z.txt", T0),
        ("metrics_20260921T141320Z", T0),
        ("20260921141320Z", T0),
        ("host9-2026-09-21_14-13-20.prom", T0),
        ("m 2026-09-21 14.13.20.5.prom", T0 + 0.5),
        ("m.2026-09-21T14:13.prom", T0 - 20),
        ("m-2026-09-21T16:13:20+02:00.prom", T0),
        ("m-2026-09-21T09:13:20-0500.prom", T0),
        ("m-2026-09-21T14:13:20-0001.prom", T0),
        ("m-2026_09_21-14_13_20-1790000000.prom", T0),
    ],
)
def test_the_time_of_a_file_is_in_its_name(name: str, time: float) -> None:
    assert times_in(name, UTC) == [time]


@pytest.mark.parametrize(
    "name", ["metrics.prom", "metrics-1.prom", "2026-09-21.prom", "2026-13-41T14:13:20", "17900000001", "1790000000123"]
)
def test_a_name_without_a_time_has_none(name: str) -> None:
    assert times_in(name, UTC) == []


def test_a_time_without_a_zone_is_local_unless_a_zone_is_given() -> None:
    name = "m-2026-09-21T14:13:20.prom"
    assert times_in(name, timezone(timedelta(hours=2))) == [T0 - 7200]
    assert times_in(name) == [datetime(2026, 9, 21, 14, 13, 20).timestamp()]


def test_files_in_any_order_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    files = [
        dump(tmp_path, second, exposition(counters("0", second, 4 * second, second))) for second in (20, 0, 50, 10)
    ]
    found = read_dumps(files)
    assert [(one.since - T0, one.ts - T0, one.drafts) for one in found.observations] == [
        (0, 10, 10), (10, 20, 10), (20, 50, 30),
    ]  # fmt: skip
    assert found.observations[0].source == str(files[3])


def test_times_given_by_hand_go_before_names(tmp_path: Path) -> None:
    files = two(tmp_path, counters("0", 1, 4, 1), counters("0", 2, 8, 2))
    (one,) = read_dumps(files, at=[500.0, 700.5]).observations
    assert (one.since, one.ts) == (500.0, 700.5)


def test_a_file_without_a_time_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text(exposition(counters("0", 1, 4, 1)))
    with pytest.raises(ImportFailed, match=r"metrics\.prom: no time in its name.*--at"):
        read_dumps([path, dump(tmp_path, 0, "")])
    both = tmp_path / "1790000000-1790000060.prom"
    with pytest.raises(ImportFailed, match="2 different times"):
        read_dumps([both])


@pytest.mark.parametrize("at", [[T0, T0], [T0, float("nan")], [T0, -1.0], [T0, 1e300], [T0]])
def test_times_that_cannot_be_are_refused(tmp_path: Path, at: list[float]) -> None:
    with pytest.raises(ImportFailed, match=r"same time as|no time in Unix seconds|times? for 2 files"):
        read_dumps(two(tmp_path, counters("0", 1, 4, 1), counters("0", 2, 8, 2)), at=at)


def test_one_file_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="two or more"):
        read_dumps([dump(tmp_path, 0, exposition(counters("0", 1, 4, 1)))])


# What is broken


@pytest.mark.parametrize(
    "line",
    [
        "vllm:x{engine= 3",
        'vllm:x{engine="0" 3',
        'vllm:x{engine="0"} three',
        'vllm:x{engine="0"}',
        "{",
        "<html><body>Not Found</body></html>",
        '{"detail":"Not Found"}',
        "# TYPE vllm:x",
        'vllm:x{engine="0",engine="1"} 3',
        "vllm:x " + "9" * 70_000,
    ],
)
def test_a_broken_line_is_named(line: str) -> None:
    text = exposition(counters("0", 1, 4, 1), line)
    number = text.split("\n").index(line) + 1
    with pytest.raises(ImportFailed, match=rf"^metrics:{number}: ") as failed:
        samples(text)
    assert failed.value.line == number


@pytest.mark.parametrize("value", ["NaN", "-3", "3.5", "1e300", "+Inf", "-Inf", "9" * 5000, "9007199254740994"])
def test_a_count_that_is_none_is_named_with_its_line(value: str) -> None:
    text = 'vllm:spec_decode_num_drafts_total{engine="0"} ' + value
    with pytest.raises(ImportFailed, match=r"^metrics:1: vllm:spec_decode_num_drafts_total is .* no count"):
        samples(text)


@pytest.mark.parametrize("position", ["", "-1", "x", "1.0", "99999999999999999999", "1024", "²"])
def test_a_position_that_is_none_is_named(position: str) -> None:
    line = f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="{position}"}} 1'
    with pytest.raises(ImportFailed, match=r"^metrics:1: .*no number from 0"):
        samples(line)


def test_the_metrics_of_something_else_and_half_of_vllms_are_refused() -> None:
    with pytest.raises(ImportFailed, match="no series of vLLM"):
        samples("python_info 1\n")
    with pytest.raises(ImportFailed, match="vllm:spec_decode_num_accepted_tokens_total of the engine e0 is missing"):
        samples(exposition(*counters("0", 1, 4, 1).split("\n")[:5]))


def test_two_servers_in_one_answer_are_refused() -> None:
    with pytest.raises(ImportFailed, match="one server"):
        samples(exposition(counters("0", 1, 4, 1), counters("0", 2, 8, 2)))


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="nowhere"):
        read_dumps([tmp_path / "nowhere-1790000000", tmp_path / "nowhere-1790000001"])
    (tmp_path / "folder-1790000000").mkdir()
    with pytest.raises(ImportFailed, match="can't be read"):
        read_dumps([tmp_path / "folder-1790000000"] * 2, at=[1, 2])


VALID = exposition(counters("0", 10, 40, 20, positions=(9, 6), generation_tokens_total=31), counters("1", 1, 4, 0))


def refused_or_read(data: bytes) -> Sequence[CounterSample]:
    try:
        return parse_exposition(data, "metrics", T0)
    except ImportFailed:
        return []


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet='vllm:{}="\\,# 01.e\n', max_size=60).map(str.encode))
def test_whatever_bytes_come_they_are_read_or_refused(data: bytes) -> None:
    refused_or_read(data)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.binary(max_size=3)), max_size=5))
def test_a_damaged_answer_is_read_or_refused_and_every_count_is_one(changes: Iterable[tuple[int, bytes]]) -> None:
    data = VALID.encode()
    for place, new in changes:
        data = data[:place] + new + data[place + 1 :]
    for sample in refused_or_read(data):
        assert all(0 <= count <= 2**53 for count in (sample.drafts, sample.draft_tokens, *sample.accepted_per_position))


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_name_of_a_file_stops_the_reader(name: str) -> None:
    times_in(name)


def test_a_long_name_is_read_in_no_time() -> None:
    assert times_in("1-" * 100_000 + "9" * 100_000) == []
