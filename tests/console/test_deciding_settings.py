"""The controller's numbers come from the environment, and one that can't be meant is refused by name."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.station.deciding_settings import VARIABLE, BadDeciding, deciding_settings
from engine.deciding.settings import DecidingSettings


def test_what_is_not_set_keeps_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert deciding_settings("") == DecidingSettings()
    monkeypatch.setenv(VARIABLE, '{"window_s": 120, "dwell_steps": 50}')
    assert deciding_settings() == DecidingSettings(window_s=120.0, dwell_steps=50)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "JSON object"),
        ("[1]", "JSON object"),
        ('{"window": 5}', "no setting window"),
        ('{"window_s": "5"}', "JSON object"),
        ('{"window_s": 0}', "window_s is 0; it must be above 0"),
        ('{"dwell_steps": 1.5}', "dwell_steps is 1.5; it is a whole number"),
        ('{"probe_share": 1}', "probe_share is 1; it lies between 0 and 1"),
        ('{"window_s": 30}', "recent_s is 60 and window_s 30"),
        ('{"probe_least_steps": 3}', "probe_least_steps is 3; it is at least 4"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_name(text: str, words: str) -> None:
    with pytest.raises(BadDeciding, match=words):
        deciding_settings(text)


@given(st.text() | st.dictionaries(st.sampled_from(["window_s", "confidence", "x"]), st.floats()).map(str))
def test_no_text_does_anything_but_give_settings_or_a_clear_refusal(text: str) -> None:
    with contextlib.suppress(BadDeciding):
        assert isinstance(deciding_settings(text), DecidingSettings)
