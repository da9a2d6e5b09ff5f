"""Tier 2 lets a workload draft again also when it has become better than any probe was made to find out."""

from __future__ import annotations

import pytest

from engine.deciding.settings import DecidingSettings
from tests.engine.deciding_simulator.run import run_adaptive
from tests.engine.deciding_simulator.traffic import HOSTILE, From, Workload, kept, steady

BRISK = DecidingSettings(window_s=40.0, recent_s=20.0, shortest_pause_s=10.0, longest_pause_s=100.0, probe_share=0.02)
TURNS = 150.0


@pytest.mark.parametrize("hazard", [0.8, 0.93])
def test_one_whose_best_length_lies_beyond_what_was_probed_is_not_left_without_drafts(hazard: float) -> None:
    turning = (From(0.0, HOSTILE), From(TURNS, (hazard,) * 4))
    station, _ = run_adaptive(
        [
            Workload("turning", turning, kept(2), spread=0.0),
            Workload("friendly", steady((0.95,) * 4), kept(2), spread=0.0),
        ],
        TURNS + 2 * BRISK.longest_pause_s,
        settings=BRISK,
    )
    made = [(made.ts, made.action) for made in station.journal.decisions if made.workload == "turning"]
    assert "fallback" in [action for ts, action in made if ts < TURNS]
    recovered = [ts for ts, action in made if action == "recover" and ts > TURNS]
    assert recovered
    assert recovered[0] < TURNS + BRISK.longest_pause_s
