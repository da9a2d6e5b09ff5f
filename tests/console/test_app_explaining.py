"""Every figure on every screen explains itself, and the command beside it is whole, safe to paste, and true."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from textual.containers import VerticalScroll

from console.app.alerts.lines import alert_lines
from console.app.bucket.facts import SPANS, BucketFacts
from console.app.drawing.line_view import LineView
from console.app.drawing.spans import text_of, width_of
from console.app.explaining.alert import alert_sections
from console.app.explaining.bucket import bucket_sections
from console.app.explaining.bucket_screen import bucket_screen_sections
from console.app.explaining.command import command_lines
from console.app.explaining.detail import moment
from console.app.explaining.engine import engine_sections
from console.app.explaining.policy import policy_sections
from console.app.explaining.record import Record
from console.app.explaining.section import Fact, Query, Section, page_lines
from console.app.explaining.status import status_sections
from console.app.frame.pages import ExplainPage
from console.app.live.columns import RowFacts
from console.app.picture import Link, Picture
from console.cli.sql import sql as sql_command
from console.feed.messages import BucketView, Series, Snapshot
from store.database import Store
from store.figures import BucketKey
from store.source import open_source
from store.step_models import step_models
from store.still_windows import StillWindows
from tests.console import scenes
from tests.console.driving import NARROW, running, settled

TRACES = Path(__file__).parents[2] / "sample_traces"
NOW = scenes.NOW


def picture(snapshot: Snapshot) -> Picture:
    return Picture(Link("connected", NOW), NOW, snapshot=snapshot)


def of_buckets(snapshot: Snapshot) -> list[Section]:
    return [one for bucket in snapshot.buckets for one in bucket_sections(RowFacts(bucket, snapshot.ts), snapshot)]


def of_bucket_screen(snapshot: Snapshot) -> list[Section]:
    bucket = snapshot.buckets[0]
    series = scenes.series(bucket.key, 30, 900.0)
    facts = BucketFacts(bucket.key, bucket, SPANS[0], series, scenes.bucket_detail(bucket.key))
    empty = BucketFacts(bucket.key, bucket, SPANS[0])
    return [*bucket_screen_sections(facts, snapshot), *bucket_screen_sections(empty, snapshot)]


def everything(snapshot: Snapshot) -> list[Section]:
    """What every screen explains of a snapshot."""
    shown = picture(snapshot)
    found = [*of_buckets(snapshot), *status_sections(shown), *engine_sections(shown)]
    for workload in snapshot.workloads or [None]:
        for entry in (None, *scenes.history()):
            found += policy_sections(shown, workload, entry)
    for line in alert_lines(scenes.alert_history(), snapshot.alerts):
        found += alert_sections(line, Record.of(snapshot))
    return found + (of_bucket_screen(snapshot) if snapshot.buckets else [])


def observed() -> Snapshot:
    """A vLLM that is only looked at through its counters."""
    key = BucketKey(None, None, None, scenes.VERSION)
    unknown: dict[str, Any] = {
        "sequences": None, "decode_rows": None, "alpha": None, "alpha_low": None, "alpha_high": None,
        "speedup_state": "absent", "k_histogram": {}, "cause_histogram": {}, "limit_histogram": {},
    }  # fmt: skip
    figures = replace(scenes.figures(key, 0.5, 40.0), **unknown)
    bucket = BucketView(key=key, figures=figures, window_label="5 min")
    engine = scenes.engine(configured=None, resolved=None, executed_k=None, executed_limit=None)
    return scenes.live(buckets=[bucket], total=figures, policy=None, policy_version=None, engines=[engine])


SCENES = {
    "live": scenes.live, "troubled": scenes.troubled, "alerting": scenes.alerting, "replay": scenes.replayed,
    "empty": scenes.no_bucket, "starting": scenes.starting, "observed": observed, "mismatch": scenes.mismatched,
}  # fmt: skip


def commands(sections: list[Section]) -> Iterator[Query]:
    for section in sections:
        yield from (block for block in section.blocks if isinstance(block, Query))


def words_of(command: str) -> list[str]:
    """As a shell takes it apart."""
    program, sql, *rest = shlex.split(command)
    assert (program, sql) == ("specdeck", "sql")
    return rest


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
@pytest.mark.parametrize("width", [52, 71, 87])
def test_nothing_is_cut_at_any_width(scene: Any, width: int) -> None:
    sections = everything(scene())
    for line in page_lines(sections, width):
        assert width_of(line) <= width, text_of(line)
    for query in commands(sections):
        lines = command_lines(query.sql, query.source, width - 2)
        told = words_of("\n".join(lines))
        assert told[-1].split() == query.sql.split()
        assert told[:-1] == ([] if query.source is None else [query.source])


@pytest.fixture(scope="module")
def recorded() -> Iterator[Store]:
    with open_source(TRACES / "hostile.jsonl.zst") as store:
        yield store


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_command_is_a_question_that_a_store_understands(scene: Any, recorded: Store) -> None:
    asked = list(dict.fromkeys(query.sql for query in commands(everything(scene()))))
    assert asked
    for sql in asked:
        recorded.connection.execute(f"EXPLAIN {sql}").fetchall()


def test_whatever_a_workload_is_called_a_command_is_one_word_that_means_it(recorded: Store) -> None:
    for name in ("'; DROP TABLE rows; --", '$(reboot) `x` "y" \\ !!', "a\nb\x1b[201~c", "客服" * 30, "it''s  two"):
        key = scenes.key(name)
        bucket = scenes.bucket(key, 0.5, 10.0)
        snapshot = scenes.live(buckets=[bucket])
        (query, *_) = commands(of_buckets(snapshot))
        told = words_of("\n".join(command_lines(query.sql, None, 60)))
        asked = told[-1].split("\nSELECT steps")[0] + " SELECT count(*) FROM picked"
        assert recorded.connection.execute(asked).fetchall() == [(0,)]
        where = told[-1][told[-1].index("workload = ") + 11 : told[-1].index("\n    AND context")]
        assert recorded.connection.execute(f"SELECT {where}").fetchall() == [(name,)]


def test_an_absent_figure_says_why() -> None:
    untagged = next(bucket for bucket in scenes.four_workloads() if bucket.figures.alpha is None)
    sections = {one.title: one for one in bucket_sections(RowFacts(untagged, NOW), scenes.live())}
    for title in ("Acceptance rate α", "Interval of α, ±", "Pooled acceptance", "Waste", "Acceptance by position"):
        assert any("nothing was drafted" in block.value for block in sections[title].blocks if isinstance(block, Fact))
    speedup = sections["Speedup, experienced"]
    assert any("calibrating" in block.value for block in speedup.blocks if isinstance(block, Fact))


def test_figures_come_in_the_order_of_the_table() -> None:
    snapshot = scenes.live()
    titles = [one.title for one in bucket_sections(RowFacts(snapshot.buckets[0], NOW), snapshot)]
    assert titles == [
        "Acceptance rate α", "Interval of α, ±", "Pooled acceptance", "Conditional acceptance",
        "AL, mean acceptance length", "Waste", "K executed, the mix", "Acceptance by position",
        "Speedup, experienced", "Speedup, marginal", "tokens/s", "n", "State", "Left out",
    ]  # fmt: skip


def test_a_long_window_is_read_from_cells_and_one_of_minutes_from_rows() -> None:
    bucket = scenes.live().buckets[0]
    assert bucket.figures.window is not None
    long = replace(bucket, figures=replace(bucket.figures, window=replace(bucket.figures.window, start=NOW - 3600)))
    for one, table in ((bucket, "row_facts"), (long, "rollup_10s")):
        (query, *_) = commands(of_buckets(scenes.live(buckets=[one])))
        assert table in query.sql


def test_every_moment_of_a_series_is_what_its_query_gives(recorded: Store) -> None:
    connection = recorded.connection
    (ts,) = connection.execute("SELECT max(ts) FROM steps").fetchall()[0]
    still = StillWindows(connection, ts, {})
    for shown in still.buckets(ts):
        points = still.series(shown.key, 900.0, 30, ts)
        series = Series(key=shown.key, cell_seconds=points[-1].ts - points[-2].ts, points=points, marks=[])
        for point in (point for point in points if point.alpha is not None):
            facts = BucketFacts(shown.key, None, SPANS[0], series, at=point.ts - series.cell_seconds / 2)
            (query,) = commands([moment(facts, Record("a trace", ts))])
            cursor = connection.execute(query.sql)
            found = dict(zip([name for name, *_ in cursor.description or []], cursor.fetchall()[0], strict=True))
            assert found["alpha"] == pytest.approx(point.alpha, abs=1e-9)
            assert found["waste_ratio"] == pytest.approx(point.waste, abs=1e-9)


async def test_tab_goes_from_figure_to_figure_and_round() -> None:
    async with running(scenes.live(), size=NARROW) as (app, _, pilot):
        await pilot.press("enter")
        await settled(pilot)
        page = app.screen
        assert isinstance(page, ExplainPage)
        lines = [text_of(line) for line in page.query_one(LineView).lines]
        scroll = page.query_one(VerticalScroll)
        assert lines[0].startswith("Acceptance rate α")
        await pilot.press("tab")
        await pilot.pause()
        assert lines[round(scroll.scroll_y)].startswith("Interval of α")
        assert page.copied().startswith("Interval of α")
        assert page.copied().count("specdeck sql") == 1
        await pilot.press("shift+tab", "shift+tab")
        await pilot.pause()
        assert lines[round(scroll.scroll_y)].startswith("Left out")
        assert 'specdeck sql "' in page.text


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        (("2", "enter"), "Acceptance rate α"), (("3", "enter"), "Workload code"), (("3", "tab", "h"), "Change"),
        (("7", "enter"), "Engine e0"), (("4", "h"), "Alert:"), (("h",), "Acceptance rate α"),
    ],
    ids=["bucket", "workload", "change", "engine", "alert", "live"],
)  # fmt: skip
async def test_on_every_screen_what_the_cursor_is_on_comes_first(keys: tuple[str, ...], first: str) -> None:
    async with running(scenes.troubled()) as (app, _, pilot):
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        page = app.screen
        assert isinstance(page, ExplainPage)
        assert page.text.startswith(first)
        assert ("tokens/s now" in page.text) is (keys[-1] == "h"), "the status line, too"


def test_pasted_into_a_shell_it_gives_the_figure_of_the_replay(tmp_path: Path, recorded: Store) -> None:
    path = tmp_path / "a trace's copy.jsonl.zst"
    path.write_bytes((TRACES / "hostile.jsonl.zst").read_bytes())
    (ts,) = recorded.connection.execute("SELECT max(ts) FROM steps").fetchall()[0]
    shown = StillWindows(recorded.connection, ts, step_models(recorded.connection)).buckets(ts)
    odd = max(shown, key=lambda one: not (one.key.workload or "").isalnum())
    bucket = BucketView(key=odd.key, figures=odd.figures, window_label=odd.window_label)
    base = scenes.replayed(ts, path=str(path))
    (query, *_) = commands(of_buckets(replace(base, buckets=[bucket])))
    told = CliRunner().invoke(sql_command, [*words_of("\n".join(command_lines(query.sql, query.source, 69))), "--json"])
    assert told.exit_code == 0, told.output
    (found,) = json.loads(told.output)
    assert found["alpha"] == pytest.approx(odd.figures.alpha, abs=1e-9)
    assert (found["steps"], found["emitted"], found["complete"]) == (odd.figures.steps, odd.figures.emitted, True)
