"""Modes as an operator types them, and states that no scheduler could execute."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import scheduler
from engine.policy import (
    POLICY_WIRE_VERSION,
    Base,
    PolicyError,
    PolicyMessage,
    PolicyState,
    ProbeOrder,
    WorkloadPolicy,
    base_k,
    decode_policy,
    describe,
    encode_policy,
    parse_mode,
    resolved_mode,
    validate,
    validate_probe,
)
from engine.records import PolicyMode
from tests.engine.test_schedule import schedules

STATIC = PolicyMode(mode="static", k=2)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("off", PolicyMode(mode="off")),
        (" static:4 ", PolicyMode(mode="static", k=4)),
        ("static:0", PolicyMode(mode="static", k=0)),
        ("schedule:[[1,4,4],[5,32,1]]", PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 32, 1)])),
        ("adaptive", PolicyMode(mode="adaptive", act=True)),
        ("advise", PolicyMode(mode="adaptive", act=False)),
        ("adaptive:[[1,8,2]]", PolicyMode(mode="adaptive", schedule=[(1, 8, 2)], act=True)),
        ("advise:[[1,8,2]]", PolicyMode(mode="adaptive", schedule=[(1, 8, 2)], act=False)),
    ],
)
def test_a_mode_is_typed_in_a_word(text: str, mode: PolicyMode) -> None:
    assert parse_mode(text) == mode
    validate(PolicyState(version=1, policy=mode))


def test_a_schedule_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "night.toml"
    path.write_text("[schedule]\n1-4 = 4\n5-32 = 1\n")
    assert parse_mode(f"schedule:{path}").schedule == [(1, 4, 4), (5, 32, 1)]
    assert parse_mode(f"adaptive:{path}").act is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no policy"),
        ("on", "is no policy"),
        ("off:", "is no policy"),
        ("off:1", "is no policy"),
        ("static", "static:4"),
        ("static:", "static:4"),
        ("static:-1", "0 or more"),
        ("static:1_0", "static:4"),
        ("static:2.5", "static:4"),
        ("schedule", "is no policy"),
        ("schedule:", "is no policy"),
        ("adaptive:", "is no policy"),
        ("schedule:[[1,4,-1]]", "entry 1"),
        ("advise:[[2,4,1]]", "entry 1"),
        ("adaptive:/nowhere.toml", "/nowhere.toml"),
    ],
)
def test_a_word_that_is_no_mode_is_refused_with_what_may_stand_there(text: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        parse_mode(text)


@given(
    st.just(PolicyMode(mode="off"))
    | st.builds(PolicyMode, mode=st.just("static"), k=st.integers(0, 99))
    | st.builds(
        lambda mode, entries, act: PolicyMode(
            mode=mode,
            schedule=[(first, last, k) for first, last, k in entries],
            act=act if mode == "adaptive" else None,
        ),
        st.sampled_from(["schedule", "adaptive"]),
        schedules(),
        st.booleans(),
    )
)
def test_what_is_shown_can_be_typed(mode: PolicyMode) -> None:
    assert parse_mode(describe(mode)) == mode


def test_adaptive_without_a_schedule_asks_for_the_engines_maximum_everywhere() -> None:
    mode = parse_mode("adaptive")
    assert [base_k(mode, running, 4) for running in (1, 32, 5000)] == [4, 4, 4]
    assert resolved_mode(mode, 4) == mode
    assert base_k(parse_mode("adaptive:[[1,8,2],[9,9,0]]"), 20, 4) == 0


def test_resolving_says_what_was_dropped_or_clamped() -> None:
    mode = parse_mode("adaptive:[[1,8,5],[9,9,1]]")
    assert resolved_mode(mode, 4).schedule == [(1, 8, 4), (9, 9, 1)]
    assert "maximum 4" in (resolved_mode(mode, 4).reason or "")
    assert resolved_mode(mode, 4, data_parallel_size=2).mode == "static"


def test_an_engine_launched_with_ranges_in_any_order_resolves_as_vllm_reads_them() -> None:
    speculative = SimpleNamespace(num_speculative_tokens_per_batch_size=[(5, 8, 1), (1, 4, 2)])
    configured = scheduler._configured(speculative, 4)
    assert configured.schedule == [(1, 4, 2), (5, 8, 1)]
    validate(PolicyState(version=0, policy=configured))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"policy": PolicyMode(mode="static")}, "policy.k"),
        ({"policy": PolicyMode(mode="schedule")}, "policy.schedule"),
        ({"policy": PolicyMode(mode="adaptive", schedule=[])}, "policy.schedule"),
        ({"policy": PolicyMode(mode="adaptive", schedule=[(2, 4, 1)])}, "policy.schedule: entry 1"),
        ({"cap": -1}, "cap"),
        ({"workloads": {"a": WorkloadPolicy(k=-1)}}, "workloads['a'].k"),
        ({"confirm_by": 5.0}, "revert"),
        ({"revert": Base(PolicyMode(mode="static"))}, "revert.policy.k"),
        ({"revert": Base(STATIC, cap=-2)}, "revert.cap"),
    ],
)
def test_a_state_that_no_scheduler_could_execute_is_refused_by_its_field(state: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        validate(PolicyState(**({"version": 1, "policy": STATIC} | state)))
    assert str(refused.value).startswith(words)


def order(**changed: Any) -> ProbeOrder:
    return ProbeOrder(**({"id": 1, "kind": "deep", "workload": "code", "k": 3, "steps": 8, "wait": 5} | changed))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": 3}, "probe.steps"),
        ({"steps": 10**6}, "probe.steps"),
        ({"wait": -1}, "probe.wait"),
        ({"wait": 10**6}, "probe.wait"),
        ({"k": 0}, "probe.k"),
        ({"workload": None}, "probe.workload"),
    ],
)
def test_an_order_that_could_not_be_executed_is_refused_by_its_field(changed: dict[str, Any], words: str) -> None:
    validate_probe(order())
    validate_probe(order(kind="k0", workload=None, k=0))
    with pytest.raises(PolicyError) as refused:
        validate_probe(order(**changed))
    assert str(refused.value).startswith(words)


def test_a_bad_probe_does_not_keep_the_policy_beside_it_from_being_applied() -> None:
    state = PolicyState(version=3, policy=STATIC, fallback=True)
    message = PolicyMessage(v=POLICY_WIRE_VERSION, station="s", state=state, probe=order(steps=0))
    assert decode_policy(encode_policy(message)).state == state


@given(st.binary(max_size=80))
def test_bytes_that_are_no_policy_are_refused(payload: bytes) -> None:
    with pytest.raises(PolicyError):
        decode_policy(payload)


def test_a_policy_message_of_before_probes_and_reverts_is_read() -> None:
    payload = msgspec.msgpack.encode({"v": 1, "station": "s", "state": {"version": 2, "policy": {"mode": "off"}}})
    assert decode_policy(payload).state == PolicyState(version=2, policy=PolicyMode(mode="off"))
