"""The hooked synchronous scheduler: what it asks for, trims, counts and reports, against vLLM's own counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.records import PolicyMode
from tests.engine.fabricated import Driver

STATIC_2 = PolicyMode(mode="static", k=2)
OFF = PolicyMode(mode="off")


@pytest.fixture
def driver(bundled_model: Path) -> Driver:
    return Driver(bundled_model)


def test_private_parts_of_vllm_are_where_we_left_them() -> None:
    from engine.vllm_private import moved

    assert moved() == [], "\n".join(moved())


def test_rows_equal_vllms_own_detail(driver: Driver) -> None:
    driver.add("a")
    driver.add("b")
    driver.step()
    for accepted in (4, 0, 2, 3, 1):
        driver.step(accepted={"a": accepted, "b": 4 - accepted})
    for name in "ab":
        drafted, accepted_ = driver.oracle(name)
        drafts = [row for row in driver.rows(name) if row["drafted"]]
        assert [row["drafted"] for row in drafts] == drafted == [4] * 5
        assert [row["accepted"] for row in drafts] == accepted_
        assert all(row["emitted"] == row["accepted"] + 1 for row in drafts)
        assert next(row["context"] for row in drafts) == 5


def test_the_row_that_ends_a_prefill_is_no_decode_row(driver: Driver) -> None:
    driver.add("a", prompt=20)
    driver.step()
    (row,) = driver.rows("a")
    assert (row["cause"], row["context"], row["emitted"], row["drafted"], row["k_asked"]) == ("prefill", 0, 1, 0, 0)


def test_a_prefill_chunk_that_emits_nothing_is_no_row(bundled_model: Path) -> None:
    driver = Driver(bundled_model, max_num_batched_tokens=64, max_num_seqs=8)
    driver.add("a", prompt=150)
    while not driver.rows():
        driver.step()
    (row,) = driver.rows("a")
    assert row["cause"] == "prefill"
    assert row["context"] > 0
    assert len(driver.frames) == 1


def test_a_hint_lane_of_one_request_leaves_its_neighbour_alone(driver: Driver) -> None:
    driver.add("plain")
    driver.add("hinted", disable_speculation=1)
    driver.step()
    driver.step()
    assert [row["drafted"] for row in driver.rows("plain")] == [0, 4]
    (hinted,) = [row for row in driver.rows("hinted") if row["cause"] != "prefill"]
    assert (hinted["k_asked"], hinted["limit"], hinted["drafted"], hinted["cause"]) == (0, "hint", 0, "none")
    assert driver.oracle("hinted") == ([], [])


def test_a_malformed_hint_is_marked_and_the_default_holds(driver: Driver) -> None:
    driver.add("odd", disable_speculation="maybe")
    driver.step()
    driver.step()
    assert driver.frames[0].sequences[0].hint_error == "'maybe'"
    assert driver.rows("odd")[-1]["drafted"] == 4


def test_all_hinted_means_the_drafter_is_not_asked(driver: Driver) -> None:
    driver.add("a", disable_speculation="true")
    output = driver.step()
    assert output.num_spec_tokens_to_schedule == 0
    assert driver.frames[-1].step is not None
    assert (driver.frames[-1].step.k_draft, driver.frames[-1].step.limit_draft) == (0, "hint")


def test_a_lower_policy_trims_drafts_that_were_already_proposed(driver: Driver) -> None:
    driver.add("a")
    driver.step()
    driver.policy(STATIC_2, version=9)
    driver.step()
    row = driver.rows("a")[-1]
    assert (row["k_verify"], row["k_asked"], row["limit"], row["drafted"], row["proposed"]) == (4, 2, "static", 2, 4)
    assert row["policy"] == 9


def test_a_higher_policy_does_not_raise_what_was_asked(driver: Driver) -> None:
    driver.policy(STATIC_2, version=1)
    driver.add("a")
    driver.step()
    driver.policy(PolicyMode(mode="static", k=4), version=2)
    driver.step()
    row = driver.rows("a")[-1]
    assert (row["k_verify"], row["k_asked"], row["drafted"], row["k_draft"]) == (2, 2, 2, 4)


def test_off_and_on_again(driver: Driver) -> None:
    driver.add("a")
    driver.step()
    driver.policy(OFF, version=1)
    driver.step()
    driver.step()
    driver.policy(STATIC_2, version=2)
    driver.step()
    driver.step()
    rows = driver.rows("a")
    assert [row["drafted"] for row in rows] == [0, 0, 0, 0, 2]
    assert [row["k_draft"] for row in rows] == [4, 0, 0, 2, 2]
    assert [row["limit"] for row in rows[1:]] == ["off", "off", "off", "static"]


def test_no_proposal_is_told_from_a_rejection(driver: Driver) -> None:
    driver.add("a")
    driver.step(drafts={"a": [3]})
    driver.step(drafts={"a": []})
    driver.step()
    one, none = driver.rows("a")[1:]
    assert (one["proposed"], one["drafted"], one["cause"]) == (1, 1, "no_proposal")
    assert (none["proposed"], none["drafted"], none["cause"]) == (0, 0, "no_proposal")


def test_filler_near_the_drafters_length_limit_is_emptied_for_everybody(bundled_model: Path) -> None:
    """vLLM returns K zeros for every request of the batch when one is within K of the limit: they are no drafts."""
    driver = Driver(bundled_model, max_model_len=64)
    driver.add("long", prompt=56)
    for name in "xyz":
        driver.add(name)
    driver.step()
    seen = 0
    while "long" in driver.scheduler.requests:
        asked = driver.scheduler.recorder.drafting.asked
        output = driver.step(drafts=dict.fromkeys(list(driver.scheduler.requests), [0] * 4) if asked.filler else None)
        if asked.filler:
            seen += 1
            assert output.scheduled_spec_decode_tokens == {}
    assert seen
    limited = [row for row in driver.rows() if row["cause"] == "length_limit" and row["drafted"] == 0]
    assert {row["seq"] for row in limited} >= {"x", "y", "z"}
    driver.step()
    driver.step()
    assert driver.rows("x")[-1]["drafted"] == 4
    for name in ("long", "x", "y", "z"):
        drafted, _ = driver.oracle(name)
        assert [row["drafted"] for row in driver.rows(name) if row["drafted"]] == drafted


def test_one_token_left_to_compute_is_not_padded_with_phantom_drafts(bundled_model: Path) -> None:
    """A full prefix-cache hit leaves one token: without a dynamic schedule vLLM would verify K filler drafts for it."""
    driver = Driver(bundled_model, enable_prefix_caching=True)
    driver.add("running", prompt=3)
    driver.add("first", prompt=33, max_tokens=1)
    driver.step()
    driver.add("again", prompt=33, disable_speculation=1)
    output = driver.step()
    assert "again" not in output.scheduled_spec_decode_tokens
    assert driver.rows("again")[0]["cause"] == "prefill"
    assert driver.oracle("again") == ([], [])


def test_max_tokens_cuts_an_accepted_run(driver: Driver) -> None:
    driver.add("a", max_tokens=3)
    driver.step()
    driver.step()
    row = driver.rows("a")[-1]
    assert (row["accepted"], row["emitted"]) == (4, 2)
    (finish,) = [finish for frame in driver.frames for finish in frame.finishes]
    assert (finish.reason, finish.output_tokens) == ("length", 3)


def test_an_abort_while_idle_is_still_reported(driver: Driver) -> None:
    from vllm.v1.request import RequestStatus

    driver.add("a")
    driver.step()
    driver.scheduler.finish_requests("a", RequestStatus.FINISHED_ABORTED)
    assert [finish.reason for finish in driver.frames[-1].finishes] == ["abort"]
    assert driver.frames[-1].step is None
    assert driver.scheduler.recorder.sequences == {}


def test_frames_are_numbered_without_holes_and_durations_are_positive(driver: Driver) -> None:
    driver.add("a")
    for _ in range(6):
        driver.step()
    assert [frame.frame for frame in driver.frames] == list(range(1, len(driver.frames) + 1))
    assert all(frame.step is not None and frame.step.duration_ms > 0 for frame in driver.frames)


def test_a_token_budget_that_cuts_drafts_is_named(bundled_model: Path) -> None:
    driver = Driver(bundled_model, max_num_batched_tokens=32, max_num_seqs=8)
    for number in range(8):
        driver.add(f"s{number}", prompt=3)
    for _ in range(4):
        driver.step(accepted={})
    cut = [row for row in driver.rows() if row["cause"] == "token_budget"]
    assert cut
    assert all(row["drafted"] < row["k_asked"] for row in cut)
