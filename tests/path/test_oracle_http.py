"""The oracle over HTTP: what specdeck stored of each request equals the detail in vLLM's own response to it. With the
bundled head here; with n-gram drafts in `test_bring_your_own`."""

from __future__ import annotations

import pytest

from tests.path.oracle import Oracle, consult
from tests.path.served import Served

pytestmark = pytest.mark.engine

KS = (1, 2, 4)


@pytest.fixture(scope="module")
def oracle(served: Served) -> Oracle:
    return consult(served, KS)


def test_every_verification_of_every_request_equals_vllms_detail(oracle: Oracle) -> None:
    assert oracle.compare() > 1000  # a head drafts at every step


def test_every_token_of_every_answer_is_in_a_row(oracle: Oracle) -> None:
    for name, answer in oracle.answers.items():
        assert sum(row.emitted for row in oracle.rows[name]) == answer["usage"]["completion_tokens"], name


def test_k_was_what_was_asked_for(oracle: Oracle) -> None:
    for name, own in oracle.rows.items():
        k = int(name[1])
        # The controller measures K = 0 now and then, for the speedup: such rows say so.
        decode = [row for row in own if row.cause != "prefill" and row.limit != "probe"]
        assert {row.k_asked for row in decode} <= ({0} if "hinted" in name else {k}), name
        assert all(row.cause != "unknown" for row in decode), name


def test_the_head_drafts_whenever_it_is_asked(oracle: Oracle) -> None:
    for name, own in oracle.rows.items():
        if "repeat" in name:
            assert all(row.drafted == row.k_asked for row in own if row.cause == "full"), name
            assert "no_proposal" not in {row.cause for row in own}, name


def test_a_hinted_request_drafts_nothing_and_vllm_agrees(oracle: Oracle) -> None:
    for k in KS:
        name = f"k{k}-hinted"
        assert sum(row.drafted for row in oracle.rows[name]) == 0
        assert not (oracle.answers[name]["metrics"]["speculative_decoding"] or {}).get("per_step_drafted")


def test_sampled_answers_are_text(oracle: Oracle) -> None:
    for name, answer in oracle.answers.items():
        if "sampled" in name or "seeded" in name:
            text = answer["choices"][0]["text"]
            assert sum(character.isascii() for character in text) >= 0.9 * len(text), (name, text)
