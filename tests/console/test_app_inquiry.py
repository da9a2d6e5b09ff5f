"""When a screen asks again: one question at a time, at once where something changed, else after a while."""

from __future__ import annotations

from msgspec.structs import replace

from console.app.frame.inquiry import Inquiry
from console.app.picture import Link, Picture
from tests.console import scenes


def at(seconds: float, **changes: object) -> Picture:
    values: dict[str, object] = {"snapshot": replace(scenes.live(), ts=scenes.NOW + seconds), **changes}
    return Picture(Link("connected", scenes.NOW), scenes.NOW, **values)  # type: ignore[arg-type]


def test_one_question_at_a_time_and_again_where_something_changed_or_time_went_by() -> None:
    inquiry = Inquiry(10.0)
    assert inquiry.begin(at(0), 1)
    assert not inquiry.begin(at(60), 2), "the answer has not come"
    inquiry.end()
    assert not inquiry.begin(at(9), 1)
    assert inquiry.begin(at(9), 2)
    inquiry.end()
    assert inquiry.begin(at(19), 2)
    inquiry.end()
    inquiry.forget()
    assert inquiry.begin(at(19), 2)


def test_nothing_is_asked_of_a_station_that_is_away_or_for_a_picture_that_is_held() -> None:
    inquiry = Inquiry(10.0)
    assert not inquiry.begin(at(0, paused_since=scenes.NOW), 1)
    assert not inquiry.begin(at(0, snapshot=None), 1)
    assert not inquiry.begin(Picture(Link("lost", scenes.NOW), scenes.NOW, snapshot=scenes.live()), 1)
    assert inquiry.begin(at(0), 1)
