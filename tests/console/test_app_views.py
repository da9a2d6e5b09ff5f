"""The pure part of the console: numbers, lines, charts, columns and the order of rows."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console.app.bucket import readout as bucket_readout
from console.app.drawing import charts, numbers, spans
from console.app.drawing.spans import Part, text_of, width_of
from console.app.drawing.themes import THEMES, next_theme
from console.app.frame.statusline import alert_line, key_line, status_line
from console.app.live.charts import alpha_chart, load_chart, spark_line
from console.app.live.columns import RowFacts, fit_columns, header, make_columns, row, state_of
from console.app.live.first_request import curl_lines
from console.app.live.row_order import RowOrder
from console.app.picture import Link, Picture
from engine.records import PolicyMode
from tests.console import scenes


@pytest.mark.parametrize(("value", "text"), [(None, "—"), (0.0, ".00"), (0.534, ".53"), (0.996, "1.00"), (1.0, "1.00")])
def test_fractions_have_no_leading_zero_and_absent_is_a_dash(value: float | None, text: str) -> None:
    assert numbers.fraction(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.0"), (96.13, "96.1"), (102.34, "102.3"), (9_999.0, "9,999"), (12_345.0, "12.3k")]
)
def test_rates_fit_their_column(value: float, text: str) -> None:
    assert numbers.rate(value) == text


@given(st.integers(min_value=0, max_value=10**11))
def test_counts_fit_six_cells(value: int) -> None:
    assert len(numbers.count(value)) <= 6


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (PolicyMode(mode="off"), "off"),
        (PolicyMode(mode="static", k=4), "static:4"),
        (PolicyMode(mode="adaptive", act=True), "adaptive"),
        (PolicyMode(mode="adaptive", act=False), "advise"),
        (None, "—"),
    ],
)
def test_modes_read_as_they_are_typed(policy: PolicyMode | None, text: str) -> None:
    assert numbers.mode(policy) == text


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_padded_text_takes_exactly_its_cells(text: str, width: int) -> None:
    safe = spans.clean(text)
    assert cell_len(spans.left(safe, width)) == width
    assert cell_len(spans.right(safe, width)) == width


@given(st.text(), st.integers(min_value=2, max_value=40))
def test_wrapped_text_stays_inside_and_loses_nothing(text: str, width: int) -> None:
    safe = spans.clean(text)
    lines = spans.wrap(safe, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(safe.split())


def test_where_room_is_short_the_most_spareable_part_goes_first() -> None:
    parts = [Part((("aaaa", "text"),), 0), Part((("bbbb", "text"),), 9), Part((("cccc", "text"),), 1)]
    assert text_of(spans.fit(parts, 20)) == "aaaa  bbbb  cccc"
    assert text_of(spans.fit(parts, 12)) == "aaaa  cccc"
    assert text_of(spans.fit(parts, 5)) == "aaaa"


def test_a_spark_is_blank_where_nothing_was_drafted() -> None:
    assert charts.spark([0.0, None, 1.0], 3) == "▁ █"


def test_bars_tell_none_from_little() -> None:
    assert charts.bars([0.0, 0.01, 1.0]) == "·▁█"


def test_a_line_breaks_at_a_gap() -> None:
    rows = charts.line([1.0, 1.0, None, None, 0.0, 0.0], 3, 1, 0.0, 1.0)
    assert rows == ["⠉ ⣀"]


def test_an_area_shows_zero_as_a_line_and_absence_as_nothing() -> None:
    assert charts.area([4.0, 2.0, 0.0, None], 4, 2, 4.0) == ["█   ", "██▁ "]


@given(st.lists(st.one_of(st.none(), st.floats(min_value=0, max_value=1)), max_size=300))
def test_a_scale_of_rates_holds_every_rate_and_is_never_narrow(values: list[float | None]) -> None:
    low, high = charts.rate_scale(values)
    assert 0 <= low < high <= 1
    assert high - low > 0.29
    assert all(low <= value <= high for value in values if value is not None)


@pytest.mark.parametrize("width", [20, 58, 98])
@pytest.mark.parametrize("height", [6, 11, 20])
def test_charts_fill_their_panel_exactly(width: int, height: int) -> None:
    for lines in (
        alpha_chart(scenes.series(None), width, height),
        load_chart(scenes.series(None), width, height, scenes.engine()),
    ):
        assert len(lines) == height
        assert all(width_of(line) <= width for line in lines)


def test_a_chart_without_data_says_so() -> None:
    assert "no data" in text_of(alpha_chart(None, 58, 11)[0])


def test_the_marks_of_a_chart_stand_where_it_happened() -> None:
    top = text_of(alpha_chart(scenes.series(None), 105, 11)[0])
    assert top.index("c") == pytest.approx(5 + 50, abs=1)
    assert top.index("░") == pytest.approx(5 + 32, abs=1)


@pytest.mark.parametrize("width", [60, 80, 100, 116, 120, 200])
def test_rows_and_header_take_the_width_and_no_more(width: int) -> None:
    layout = fit_columns(make_columns(4, True), width)
    assert width_of(header(layout, "rate")) <= width
    for bucket in scenes.four_workloads():
        assert width_of(row(RowFacts(bucket, scenes.NOW), layout, True)) == width_of(header(layout, ""))


def test_the_columns_that_matter_most_are_there_at_every_width() -> None:
    for width in (60, 80, 120):
        shown = {column.id for column, _ in fit_columns(make_columns(4, False), width)}
        assert {"workload", "context", "alpha", "waste", "k", "rate", "state"} <= shown


def test_speedup_is_absent_and_calibrating_until_it_is_measured() -> None:
    layout = fit_columns(make_columns(4, False), 118)
    assert "calibrating" in text_of(row(RowFacts(scenes.four_workloads()[2], scenes.NOW), layout, False))


def test_states_have_a_glyph_each() -> None:
    code, *_, untagged, idle = scenes.four_workloads()
    alert = scenes.alerting().alerts[2]
    assert state_of(RowFacts(code, scenes.NOW)) == ("●", "ok", "ok")
    assert state_of(RowFacts(untagged, scenes.NOW))[:2] == ("○", "no drafts")
    assert state_of(RowFacts(idle, scenes.NOW))[:2] == ("○", "idle 4 min")
    assert state_of(RowFacts(code, scenes.NOW, alert)) == ("▲", "drift", "warn")


def test_sorting_puts_what_does_worst_first_and_absent_last() -> None:
    order = RowOrder()
    rows = [RowFacts(bucket, scenes.NOW) for bucket in scenes.four_workloads()]
    order.sort("alpha", order.arrange(rows))
    names = [facts.bucket.key.workload for facts in order.arrange(rows)]
    assert names[0] == "creative"
    assert names[-1] == "untagged"


def picture(**changes: object) -> Picture:
    values: dict[str, object] = {"snapshot": scenes.live(), **changes}
    return Picture(Link("connected", scenes.NOW - 60), scenes.NOW, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_lines_that_are_always_there_fit(width: int) -> None:
    for scene in (scenes.live(), scenes.alerting(), scenes.starting(), scenes.mismatched(), None):
        now = picture(snapshot=scene)
        assert width_of(status_line(now, width)) == width
        assert width_of(alert_line(now, width)) <= width
        assert width_of(key_line([], now, {}, width, "live")) <= width


def test_the_status_line_keeps_mode_k_and_alerts_at_80_columns() -> None:
    line = text_of(status_line(picture(snapshot=scenes.alerting()), 80))
    for part in ("e0 restarting", "static:4", "■1", "▲2"):
        assert part in line


def test_k_is_marked_only_where_nothing_explains_it() -> None:
    adaptive = PolicyMode(mode="adaptive", act=True)
    lowered = scenes.engine(executed_k=1, executed_limit="adaptive", mismatch="adaptive: K 1 where 4 is configured")
    explained = scenes.live(engines=[lowered], policy=adaptive)
    assert "K 1  run" in text_of(status_line(picture(snapshot=explained), 120)), "that is what adaptive is for"
    odd = scenes.live(engines=[msgspec.structs.replace(lowered, unexplained=True)], policy=adaptive)
    line = status_line(picture(snapshot=odd), 120)
    assert ("1 ≠", "critical") in line


def test_the_status_line_gives_up_the_version_before_the_names_of_the_models() -> None:
    head = scenes.engine(drafter="SmolLM2-135M-eagle3@0123456789abcdef:-:bfloat16:-")
    now = picture(snapshot=scenes.live(engines=[head]))
    assert "SmolLM2-135M-Instruct · SmolLM2-135M-eagle3 · vllm 0.32.0 cpu" in text_of(status_line(now, 160))
    narrower = text_of(status_line(now, 130))
    assert "SmolLM2-135M-Instruct · SmolLM2-135M-eagle3  static:4" in narrower
    assert "SmolLM2" not in text_of(status_line(now, 80))


def test_lost_telemetry_is_in_the_status_line() -> None:
    assert "lost 12" in text_of(status_line(picture(snapshot=scenes.alerting()), 120))


def test_a_request_to_paste_is_one_shell_command() -> None:
    import shlex

    for width in (76, 300):
        words = shlex.split("\n".join(curl_lines(picture(snapshot=scenes.no_bucket()), width)))
        assert [word for word in words if word.strip()][:2] == ["curl", "http://127.0.0.1:8000/v1/chat/completions"]
        import json

        body = json.loads(words[-1])
        assert (body["model"], body["vllm_xargs"]) == ("SmolLM2-135M-Instruct", {"workload": "mine"})


def test_the_spark_line_says_window_and_sample() -> None:
    line = text_of(spark_line(scenes.four_workloads()[0], 80))
    assert ".53 ±.03  n 118, 5 min" in line


def test_themes_go_round() -> None:
    names = [theme.name for theme in THEMES]
    assert [next_theme(name) for name in names] == [*names[1:], names[0]]
    assert next_theme("another") == names[0]


def test_marks_that_stand_close_get_one_line_across_a_chart() -> None:
    assert list(charts.spread([10, 3, 11, 12, 13, 14, 30])) == [3, 10, 14, 30]


def test_an_interval_that_says_nothing_is_not_written_out() -> None:
    told = text_of(bucket_readout._ratio("experienced ", "text", 1.28, 0.0, 7_827_746.72))
    assert told == "experienced 1.28 ±?"
    assert text_of(bucket_readout._ratio("experienced ", "text", 1.28, 1.1, 1.5)) == "experienced 1.28 1.10–1.50"


def test_an_interval_that_says_nothing_takes_no_room() -> None:
    assert [numbers.half_width(0.9, high) for high in (1.1, 20.88, 20.9, 66675.0)] == [".10", "9.99", "≥10", "≥10"]
    assert numbers.reach(1.0, 1e12) == "≥10"
