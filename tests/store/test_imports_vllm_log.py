"""vLLM's log: exact tokens, the draft steps that it doesn't print, and the year that its stamps don't name."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.imports.draft_steps import agrees, estimated_draft_steps
from store.imports.errors import ImportFailed
from store.imports.log_lines import DraftLine, parse_line
from store.imports.observations import Observation, Observed
from store.imports.vllm_log import read_logs
from tests.store.imports_data.builders import draft_line, engine_line, logged

T0 = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
STEPS = [(4, 2)] * 30 + [(4, 0)] * 12 + [(4, 4)] * 8
"""50 draft steps, 200 draft tokens, 92 accepted."""


def log(folder: Path, *lines: str, name: str = "vllm.log") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def observed(folder: Path, *lines: str, year: int | None = 2026) -> Observed:
    return read_logs([log(folder, *lines)], year, UTC)


def rounds(count: int, *, first: int = 0, generation: float = 50.0) -> list[str]:
    """Rounds of one engine, 10 s apart; each drafted `STEPS`."""
    return [
        line
        for number in range(first, first + count)
        for line in (
            logged(stamp(number * 10), engine_line(generation=generation)),
            logged(stamp(number * 10), draft_line(STEPS, 4)),
        )
    ]


def stamp(seconds: float) -> str:
    """`seconds` after T0 as vLLM writes it."""
    return datetime.fromtimestamp(T0 + seconds, UTC).strftime("%m-%d %H:%M:%S")


def spans(found: Sequence[Observation]) -> list[tuple[float, float]]:
    return [(one.since - T0, one.ts - T0) for one in found]


# Rounds


def test_the_lines_of_a_running_server_are_read(tmp_path: Path) -> None:
    """Lines of vLLM 0.32.0, the bundled model with ngram at K = 4."""
    found = observed(
        tmp_path,
        "(APIServer pid=10321) INFO 11-30 00:15:09 [loggers.py:335] Engine 000: Avg prompt throughput: 172.1 tokens/s, "
        "Avg generation throughput: 69.2 tokens/s, Running: 0 reqs, Waiting: 0 reqs, CPU KV cache usage: 0.0%, Prefix "
        "cache hit rate: 0.0%",
        "(APIServer pid=10321) INFO 11-30 00:15:09 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 1.55,"
        " Accepted throughput: 24.39 tokens/s, Drafted throughput: 176.65 tokens/s, Accepted: 280 tokens, Drafted: 2028"
        " tokens, Per-position acceptance rate: 0.367, 0.128, 0.043, 0.014, Avg Draft acceptance rate: 13.8%",
        "(APIServer pid=10321) INFO 11-30 00:15:19 [loggers.py:335] Engine 000: Avg prompt throughput: 126.3 tokens/s, "
        "Avg generation throughput: 62.9 tokens/s, Running: 4 reqs, Waiting: 1 reqs, Deferred: 1 reqs, CPU KV cache "
        "usage: 0.0%, Prefix cache hit rate: 0.0%",
        "(APIServer pid=10321) INFO 11-30 00:15:19 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 1.80,"
        " Accepted throughput: 27.70 tokens/s, Drafted throughput: 139.19 tokens/s, Accepted: 277 tokens, Drafted: 1392"
        " tokens, Per-position acceptance rate: 0.445, 0.233, 0.092, 0.026, Avg Draft acceptance rate: 19.9%",
    )
    first, second = found.observations
    assert (first.drafts, first.draft_tokens, first.accepted_tokens) == (507, 2028, 280)
    assert first.accepted_per_position == [186, 65, 22, 7]
    assert (second.drafts, second.draft_tokens, second.accepted_tokens) == (348, 1392, 277)
    assert second.since == first.ts == datetime(2026, 11, 30, 0, 15, 9, tzinfo=UTC).timestamp()
    assert (second.generation_tokens, second.prompt_tokens) == (629, 1263)
    assert (second.engine, second.running, second.waiting, second.approximate) == ("e0", 4, 1, True)
    assert found.notes == []


def test_rounds_follow_each_other_without_a_hole_and_idle_time_belongs_to_none(tmp_path: Path) -> None:
    found = observed(tmp_path, *rounds(3), *rounds(2, first=100)).observations
    assert spans(found) == [(-10, 0), (0, 10), (10, 20), (990, 1000), (1000, 1010)]
    assert [one.generation_tokens for one in found] == [500] * 5
    assert [one.drafts for one in found] == [50] * 5


@pytest.mark.parametrize("interval", [5, 60])
def test_the_interval_is_the_one_that_most_rounds_have_between_them(tmp_path: Path, interval: int) -> None:
    lines = [logged(stamp(n * interval), draft_line(STEPS, 4)) for n in (0, 1, 2, 3, 90)]
    found = observed(tmp_path, *lines).observations
    assert {one.ts - one.since for one in found} == {interval}


def test_a_single_round_lasts_what_is_usual(tmp_path: Path) -> None:
    assert spans(observed(tmp_path, *rounds(1)).observations) == [(-10, 0)]
    assert spans(observed(tmp_path, *rounds(1), *rounds(1, first=360)).observations) == [(-10, 0), (3590, 3600)]


def test_a_round_without_drafts_drafted_nothing(tmp_path: Path) -> None:
    lines = [*rounds(2), logged(stamp(20), engine_line(generation=31.4))]
    one = observed(tmp_path, *lines).observations[-1]
    assert (one.drafts, one.draft_tokens, one.accepted_tokens, one.generation_tokens) == (0, 0, 0, 314)


def test_lines_of_drafts_alone_leave_tokens_and_load_unknown(tmp_path: Path) -> None:
    (one,) = observed(tmp_path, logged(stamp(0), draft_line(STEPS, 4))).observations
    assert (one.drafts, one.generation_tokens, one.running) == (50, None, None)


def test_drafts_belong_to_the_engine_that_their_process_spoke_of(tmp_path: Path) -> None:
    lines = [
        logged(stamp(0), engine_line(0)),
        logged(stamp(0), draft_line([(4, 4)], 4)),
        logged(stamp(0), engine_line(1), pid=8),
        logged(stamp(1), engine_line(12)),
        logged(stamp(1), draft_line([(3, 1)], 4), pid=8),
        logged(stamp(1), draft_line([(2, 0)], 4)),
        logged(stamp(9), draft_line([(1, 0)], 4)),
    ]
    found = observed(tmp_path, *lines).observations
    assert [(one.engine, one.draft_tokens) for one in found] == [("e0", 4), ("e1", 3), ("e12", 2), ("e12", 1)]


def test_lines_too_far_apart_are_no_round(tmp_path: Path) -> None:
    lines = [logged(stamp(0), engine_line(3)), logged(stamp(10), draft_line(STEPS, 4))]
    found = observed(tmp_path, *lines).observations
    assert [(one.engine, one.ts - T0, one.drafts, one.generation_tokens) for one in found] == [
        ("e3", 0, 0, 500),
        ("e3", 10, 50, None),
    ]


def test_ranks_that_are_logged_together_are_one_engine(tmp_path: Path) -> None:
    lines = [logged(stamp(0), engine_line("2 Engines Aggregated")), logged(stamp(0), draft_line(STEPS, 4))]
    (one,) = observed(tmp_path, *lines).observations
    assert (one.engine, one.drafts) == ("2 engines", 50)


def test_files_of_one_server_are_read_as_one_log(tmp_path: Path) -> None:
    lines = rounds(6)
    whole = read_logs([log(tmp_path, *lines)], 2026, UTC).observations
    parts = [log(tmp_path, *lines[8:], name="b"), log(tmp_path, *lines[:8], name="a")]
    halves = read_logs(parts, 2026, UTC).observations
    assert [(one.since, one.ts, one.drafts) for one in halves] == [(one.since, one.ts, one.drafts) for one in whole]


# What stands before a line

MESSAGE = draft_line(STEPS, 4)


@pytest.mark.parametrize(
    "line",
    [
        f"INFO 11-29 12:00:01 [metrics.py:86] {MESSAGE}",
        f"(EngineCore_0 pid=123) INFO 11-29 12:00:01 [metrics.py:86] {MESSAGE}",
        f"\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m11-29 12:00:01\x1b[0m "
        f"\x1b[90m[metrics.py:120]\x1b[0m {MESSAGE}",
        f"2026-11-29T12:00:01.000000000Z (APIServer pid=1) INFO 01-01 00:00:00 [metrics.py:120] {MESSAGE}",
        f"2026-11-29T14:00:01+02:00 stdout F (APIServer pid=1) INFO 11-29 13:00:01 [metrics.py:120] {MESSAGE}",
        f"Nov 29 12:00:05 host vllm[77]: (APIServer pid=1) INFO 11-29 12:00:01 [metrics.py:120] {MESSAGE}\r",
        f'{{"asctime": "2026-11-29 12:00:01,000", "levelname": "INFO", "process": 7, "message": "{MESSAGE}"}}',
        f"(APIServer pid=1) INFO 11-29 12:00:01 [metrics.py:120] Engine 000: {MESSAGE}",
    ],
)
def test_a_line_is_found_behind_any_prefix(tmp_path: Path, line: str) -> None:
    (one,) = observed(tmp_path, line).observations
    assert (one.ts - T0, one.drafts, one.draft_tokens, one.accepted_tokens) == (1, 50, 200, 92)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "Draft acceptance rate: 46.0%, Mean acceptance length: 2.84, Accepted: 92 tokens, Drafted: 200 tokens",
            DraftLine(92, 200, 2.84, []),
        ),
        (
            "Per-position acceptance rate: 0.760, 0.760, Drafted: 200 tokens, Accepted: 92 tokens",
            DraftLine(92, 200, None, [0.76, 0.76]),
        ),
    ],
)
def test_fields_may_come_in_another_order_and_some_be_missing(message: str, said: DraftLine) -> None:
    line = parse_line(f"{stamp(0)} SpecDecoding metrics: {message}", 1)
    assert line is not None
    assert line.said == said


# Draft steps

full_steps = st.integers(1, 8).flatmap(
    lambda k: st.tuples(st.just(k), st.lists(st.tuples(st.just(k), st.integers(0, k)), min_size=1, max_size=100))
)
mixed_steps = st.integers(1, 8).flatmap(
    lambda k: st.tuples(
        st.just(k),
        st.lists(
            st.integers(1, k).flatmap(lambda d: st.tuples(st.just(d), st.integers(0, d))), min_size=1, max_size=100
        ),
    )
)


def printed(k: int, steps: list[tuple[int, int]]) -> DraftLine:
    line = parse_line(logged("11-29 12:00:01", draft_line(steps, k)), 1)
    assert line is not None
    assert isinstance(line.said, DraftLine)
    return line.said


@settings(deadline=None)
@given(full_steps)
def test_draft_steps_are_exact_where_every_draft_is_full(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    line = printed(*drawn)
    assert estimated_draft_steps(*line) == len(drawn[1])


@settings(deadline=None)
@given(mixed_steps)
def test_draft_steps_agree_with_all_that_was_printed(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    k, steps = drawn
    line = printed(k, steps)
    assert agrees(len(steps), line.accepted, line.rates)
    estimate = estimated_draft_steps(*line)
    assert -(-line.drafted // k) <= estimate <= line.drafted
    assert agrees(estimate, line.accepted, line.rates)
    assert 1 + line.accepted / estimate == pytest.approx(line.length, abs=0.005 + 1e-6)


def test_draft_steps_of_mixed_drafts_are_nearly_always_found() -> None:
    rng = random.Random(3)
    errors = []
    for _ in range(200):
        steps = [
            (d, min(d, rng.choice([0, 0, 1, 2, 5]))) for d in (rng.randint(1, 5) for _ in range(rng.randint(20, 900)))
        ]
        errors.append(abs(estimated_draft_steps(*printed(5, steps)) / len(steps) - 1))
    assert sum(error == 0 for error in errors) >= 195
    assert max(errors) < 0.002


@pytest.mark.parametrize(
    ("line", "steps"),
    [
        (DraftLine(92, 200, 2.84, []), 50),
        (DraftLine(0, 0, 1.0, [0.0, 0.0]), 0),
        (DraftLine(0, 12, 1.0, [0.0, 0.0, 0.0]), 4),
        (DraftLine(0, 13, 1.0, [0.0, 0.0, 0.0]), 5),
        (DraftLine(10**15 - 1, 10**15 - 1, 1.01, [0.01]), 10**15 - 1),
        (DraftLine(5, 8, 999.0, [1.0, 1.0]), 4),
    ],
)
def test_draft_steps_of_odd_lines_are_still_possible_ones(line: DraftLine, steps: int) -> None:
    assert estimated_draft_steps(*line) == steps


# Years


def written_on(path: Path, *moment: int) -> Path:
    ts = datetime(*moment, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]
    os.utime(path, (ts, ts))
    return path


def test_the_year_is_that_of_the_files_modification_and_is_said(tmp_path: Path) -> None:
    path = written_on(log(tmp_path, *rounds(2)), 2026, 11, 29, 12, 30)
    found = read_logs([path], zone=UTC)
    assert spans(found.observations) == [(-10, 0), (0, 10)]
    assert found.notes == [f"{path}: its stamps name no year; by the file's modification time it begins in 2026"]
    written_on(path, 2027, 3, 1)
    assert read_logs([path], zone=UTC).observations == found.observations


def test_a_file_may_have_been_touched_a_little_before_its_last_stamp(tmp_path: Path) -> None:
    path = written_on(log(tmp_path, *rounds(2)), 2026, 11, 29, 11, 0)
    assert spans(read_logs([path], zone=UTC).observations)[-1] == (0, 10)


@pytest.mark.parametrize("year", [2026, None])
def test_a_log_goes_on_over_new_year(tmp_path: Path, year: int | None) -> None:
    stamps = ["12-31 23:59:40", "12-31 23:59:50", "01-01 00:00:00", "12-31 23:59:59", "01-01 00:00:10"]
    path = written_on(log(tmp_path, *(logged(each, draft_line(STEPS, 4)) for each in stamps)), 2027, 1, 1, 0, 5)
    times = [one.ts for one in read_logs([path], year, UTC).observations]
    midnight = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    assert [ts - midnight for ts in times] == [-20, -10, -1, 0, 10]


def test_a_zone_is_local_time_unless_given(tmp_path: Path) -> None:
    path = log(tmp_path, *rounds(1))
    (east,) = read_logs([path], 2026, timezone(timedelta(hours=2))).observations
    assert east.ts == T0 - 7200
    (local,) = read_logs([path], 2026).observations
    assert local.ts == datetime(2026, 11, 29, 12).timestamp()


def test_a_day_that_the_year_has_not_is_named(tmp_path: Path) -> None:
    lines = [logged("02-28 12:00:00", MESSAGE), logged("02-29 12:00:00", MESSAGE)]
    with pytest.raises(ImportFailed, match=r"vllm\.log:2: 02-29 is no day of the year 2026: say with --year"):
        observed(tmp_path, *lines)
    assert len(observed(tmp_path, *lines, year=2028).observations) == 2


@pytest.mark.parametrize("year", [-1, 0, 1, 1900, 10_000])
def test_a_year_of_no_log_is_refused(tmp_path: Path, year: int) -> None:
    with pytest.raises(ImportFailed, match="--year"):
        observed(tmp_path, *rounds(1), year=year)


# What is broken


@pytest.mark.parametrize(
    "line",
    [
        logged(stamp(30), MESSAGE[:90]),
        logged(stamp(30), MESSAGE.replace("Drafted: 200", "Drafted: 20")),
        logged(stamp(30), MESSAGE.replace("Accepted: 92", "Accepted: nan")),
        logged(stamp(30), MESSAGE.replace("Accepted: 92", "Accepted: -92")),
        logged(stamp(30), MESSAGE.replace("Drafted: 200", "Drafted: " + "9" * 400)),
        logged(stamp(30), MESSAGE.replace("length: 2.84", "length: 0.84")),
        logged(stamp(30), engine_line().replace("50.0", "5x")),
        logged("13-01 12:00:00", MESSAGE),
        logged("02-31 12:00:00", MESSAGE),
        MESSAGE,
    ],
)
def test_a_line_that_is_not_whole_is_left_out_and_named(tmp_path: Path, line: str) -> None:
    found = observed(tmp_path, *rounds(2), line, *rounds(1, first=2))
    assert spans(found.observations) == [(-10, 0), (0, 10), (10, 20)]
    (note,) = found.notes
    assert note.endswith("vllm.log: lines of statistics that are not whole were left out (1): 5")
    with pytest.raises(ImportFailed, match=r"vllm\.log:1: .*not whole"):
        observed(tmp_path, line)


@pytest.mark.parametrize("text", ["", "\n", "INFO 11-29 12:00:00 nothing of interest\n", "\ufeff"])
def test_a_log_without_statistics_is_refused_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vllm.log"
    path.write_text(text)
    with pytest.raises(ImportFailed, match=r"vllm\.log: no line of statistics.*--disable-log-stats"):
        read_logs([path])


def test_a_log_without_drafts_says_so(tmp_path: Path) -> None:
    (note,) = observed(tmp_path, logged(stamp(0), engine_line())).notes
    assert "nothing was drafted" in note


def test_bytes_that_are_no_text_and_marks_of_other_systems_do_not_matter(tmp_path: Path) -> None:
    text = "\n".join(rounds(2))
    plain = observed(tmp_path, text).observations
    path = tmp_path / "vllm.log"
    for data in (b"\x80\xfd\n" + text.encode(), text.encode("utf-16"),
                 b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()):  # fmt: skip
        path.write_bytes(data)
        assert read_logs([path], 2026, UTC).observations == plain


WHOLE = "\n".join([*rounds(2), engine_line(1), ""]).encode()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(max_size=3)), max_size=6), st.binary(max_size=50))
def test_whatever_bytes_come_they_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, bytes]], more: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.log"
    data = WHOLE
    for place, new in changes:
        data = data[:place] + new + data[place + 1 :]
    path.write_bytes(data + more)
    for year in (2026, None):
        try:
            found = read_logs([path], year, UTC)
        except ImportFailed:
            continue
        for one in found.observations:
            assert 0 <= one.accepted_tokens <= one.draft_tokens
            assert 0 < one.since < one.ts
