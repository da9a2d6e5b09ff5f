"""Realised speedup in the report: measured against vanilla steps of the same batch, however load and K moved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.records import Record, Row
from store.database import Store
from store.figures import Figures
from store.ingest import Ingest
from store.levels import LEVELS
from store.report import report
from store.step_times import roll_up_steps, step_times
from tests.store.builders import T0, engine, reported, row, sequence, step, store_of


class Clock:
    """Steps one after the other, each as long as it says."""

    def __init__(self, ts: float = T0) -> None:
        self.ts = ts
        self.number = 0

    def steps(self, times: int, rows: list[Row], ms: float, **changed: object) -> Iterator[Record]:
        for _ in range(times):
            self.number += 1
            self.ts += ms / 1000
            yield step(self.number, rows, ts=self.ts, duration_ms=ms, **changed)


def vanilla(batch: int) -> list[Row]:
    return [row(f"s{number}", d=0, a=0, k=0) for number in range(batch)]


def drafting(batch: int, k: int = 4, a: int = 2) -> list[Row]:
    return [row(f"s{number}", d=k, a=a) for number in range(batch)]


def history(rows_of_vanilla: dict[int, float], *runs: tuple[int, list[Row], float]) -> list[Record]:
    """Clean vanilla steps at each batch (ms a step) for 40 s, then the runs: steps, rows, ms."""
    clock = Clock()
    records: list[Record] = [engine(), *(sequence(f"s{number}") for number in range(16))]
    for _ in range(2):
        for batch, ms in rows_of_vanilla.items():
            records += clock.steps(round(20_000 / ms), vanilla(batch), ms, k_verify=0, k_draft=0)
    for times, rows, ms in runs:
        records += clock.steps(times, rows, ms)
    return records


def of(records: list[Record], window: float) -> Figures:
    found = reported(records, window=window).total
    assert found is not None
    return found


def test_without_vanilla_steps_it_is_calibrating() -> None:
    figures = of(history({}, (500, drafting(1), 40.0)), 20.0)
    assert (figures.speedup, figures.speedup_state) == (None, "calibrating")
    assert figures.state == "few"


def test_load_and_not_acceptance_makes_speculation_a_loss() -> None:
    """The same acceptance at two loads: 2.08 times as fast alone, 0.77 times at 8."""
    alone, busy = 1000 / 52, 8 * 1000 / 51.4 / 8
    records = history({1: alone, 8: busy}, (600, drafting(1, a=1), 1000 / 108 * 2))
    assert of(records, 8.0).speedup == pytest.approx(108 / 52, rel=0.03)
    records = history({1: alone, 8: busy}, (600, drafting(8, a=1), 1000 / 39.6 * 2))
    assert of(records, 20.0).speedup == pytest.approx(39.6 / 51.4, rel=0.03)


def test_load_and_k_that_move_together_are_not_averaged_apart() -> None:
    """500 rows (e 3, v 30, t 40) and 500 rows (e 1, v 100, t 100): 1.357, where the product of the means is 1.857."""
    light, heavy = drafting(1, k=2, a=2), drafting(4, k=1, a=0)
    records = history({1: 30.0, 4: 100.0}, (500, light, 40.0), (125, heavy, 100.0))
    figures = of(records, 32.49)
    assert figures.decode_rows == 1000
    assert figures.speedup == pytest.approx(1.357, abs=5e-4)
    assert figures.speedup_low is not None
    assert figures.speedup_low < 1.357


def test_prefills_of_neighbours_are_taken_out() -> None:
    clock = Clock()
    records: list[Record] = [engine(), *(sequence(f"s{number}") for number in range(4))]
    for _ in range(4):
        records += clock.steps(400, vanilla(1), 30.0, k_verify=0, k_draft=0)
        records += clock.steps(20, vanilla(1), 230.0, k_verify=0, k_draft=0, prefill_tokens=400)
    for _ in range(10):
        records += clock.steps(90, drafting(1, k=2, a=2), 40.0)
        records += clock.steps(10, drafting(1, k=2, a=2), 240.0, prefill_tokens=400)
    figures = of(records, 55.0)
    assert figures.speedup == pytest.approx(1.833, rel=0.05)
    assert figures.speedup_state == "ok"
    assert figures.speedup_low is not None
    assert figures.speedup_high is not None
    assert figures.speedup_low < figures.speedup < figures.speedup_high  # type: ignore[operator]


def test_it_is_the_same_from_rollups_as_from_rows(tmp_path: Path) -> None:
    records = history({2: 30.0}, (1000, drafting(2), 50.0))
    raw = of(records, 49.0)
    with Store.open(tmp_path / "rolled.duckdb") as store:
        ingest = Ingest(store)
        for number, record in enumerate(records):
            ingest.record(record)
            if number % 100 == 0:
                ingest.flush()
        ingest.record(step(10**6, [], ts=T0 + 3600))
        ingest.close()
        assert store.connection.execute("SELECT count(*) FROM load_5m").fetchall() > [(0,)]
        end = max(record.ts for record in records)
        rolled = report(store.connection, source="rolled", window=49.0, at=end).total
    assert rolled is not None
    assert rolled.speedup == pytest.approx(raw.speedup)
    assert (rolled.alpha, rolled.emitted, rolled.k_histogram) == (raw.alpha, raw.emitted, raw.k_histogram)


def test_its_interval_does_not_depend_on_how_the_record_was_rolled_up() -> None:
    records: list[Record] = [engine(), sequence("s0")]
    for number in range(2400):
        plain, ts = number % 4 == 0, T0 + number * 4.0
        rows, k = (vanilla(1), 0) if plain else (drafting(1, a=number % 3), 4)
        ms = (30.0 if plain else 40.0) + number % 7
        records.append(step(number + 1, rows, ts=ts, duration_ms=ms, k_verify=k, k_draft=k))
    with store_of(records) as store:
        rolled = [report(store.connection, source="x", window=window).total for window in (250.0, 3000.0, 9599.0)]
        for table in ("rollup", "load"):
            for level in LEVELS:
                store.connection.execute(f"DELETE FROM {table}_{level.name}")
        store.connection.execute("DELETE FROM sequence_rollup_10s")
        store.connection.execute("UPDATE progress SET up_to = 0 WHERE name <> 'step_times'")
        raw = [report(store.connection, source="x", window=window).total for window in (250.0, 3000.0, 9599.0)]
    for one, other in zip(rolled, raw, strict=True):
        assert one is not None
        assert one.speedup_state == "ok"
        assert one.speedup_low is not None
        assert other is not None
        speedups = ("speedup", "speedup_low", "speedup_high")
        # Sums of the same numbers in another order differ in the last place.
        assert [getattr(one, name) for name in speedups] == pytest.approx([getattr(other, name) for name in speedups])
        assert replace(one, **dict.fromkeys(speedups)) == replace(other, **dict.fromkeys(speedups))


@pytest.mark.parametrize("rolled", [True, False], ids=["rolled up", "as steps"])
def test_the_first_step_of_a_probe_block_tells_no_step_time(rolled: bool) -> None:
    """Two blocks of four steps; the second lies across two cells of 10 s, a lost frame ends it and begins another."""
    records: list[Record] = [engine(), sequence("s0")]
    plain = {"k_verify": 4, "k_draft": 4}
    quiet: dict[str, object] = {"k_verify": 0, "k_draft": 0, "probe": "k0"}
    for number in range(1, 160):
        probed = number in (40, 41, 42, 43, 98, 99, 100, 101, 103)
        ms = 500.0 if number in (40, 98, 103) else 30.0 if probed else 60.0
        if number != 102:
            records.append(
                step(number, vanilla(1) if probed else drafting(1), duration_ms=ms, **quiet if probed else plain)
            )
    with store_of(records) as store:
        if rolled:
            roll_up_steps(store.connection, T0 + 10)
            roll_up_steps(store.connection, T0 + 15)
        (times,) = step_times(store.connection).values()
    clean = times.take(times.clean)
    assert clean.count.sum() == 6
    assert clean.mean_ms == pytest.approx([30.0] * len(clean))
    assert times.count.sum() == 158 - 3
