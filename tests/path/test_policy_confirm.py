"""A raise that serves nobody takes itself back: at batch 16, K is raised to where it costs more than it brings."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from console.feed.messages import Snapshot
from console.feed.protocol import History, HistoryEntry, HistoryParams, PolicySet
from engine.records import PolicyMode
from tests.path.policies import set_policy
from tests.path.served import Served, until

pytestmark = [pytest.mark.engine, pytest.mark.alone]

BATCH = 16
SECONDS = 25.0
BEFORE, HARMFUL = PolicyMode(mode="static", k=1), PolicyMode(mode="static", k=4)


@contextmanager
def busy(served: Served) -> Iterator[None]:
    """Sixteen requests at any moment."""
    ended, model = threading.Event(), served.model()

    def send(number: int) -> None:
        for turn in itertools.count():
            body: dict[str, Any] = {
                "model": model, "prompt": f"{number} and {turn}: a story about", "max_tokens": 120, "ignore_eos": True,
                "temperature": 0.0, "vllm_xargs": {"workload": "busy"},
            }  # fmt: skip
            httpx.post(f"{served.url}/v1/completions", json=body, timeout=60.0)
            if ended.is_set():
                return

    threads = [threading.Thread(target=send, args=(number,), daemon=True) for number in range(BATCH)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(60.0)


def test_a_harmful_raise_that_nobody_confirms_takes_itself_back_and_says_why(served: Served) -> None:
    set_policy(served, PolicySet(policy=BEFORE))
    with busy(served):
        until("a full batch", lambda: (served.snapshot().running or 0) >= BATCH, 30.0)
        time.sleep(6.0)  # what it is held against
        raised = set_policy(served, PolicySet(policy=HARMFUL, confirm=SECONDS))
        assert raised.confirm_by == pytest.approx(time.time() + SECONDS, abs=5.0)
        waiting = served.snapshot()
        assert waiting.unconfirmed is not None
        assert waiting.unconfirmed.reverts_to == BEFORE
        picture = until("the raise is taken back", lambda: _back(served), SECONDS + 10)
        assert picture.unconfirmed is None
        until("the engine executes it", lambda: _executed(served) == 1, 15.0)
    entry = _reverted(served, raised.version)
    print(f"{entry.actor}: {entry.text} {entry.why} {entry.numbers}")
    assert entry.after == {"mode": "static", "k": 1}
    assert any(word in f"{entry.text} {entry.why}" for word in ("tokens/s", "confirm"))
    assert set_policy(served, PolicySet(policy=HARMFUL)).confirm_by is None, "without `confirm` it stays"


def _back(served: Served) -> Snapshot | None:
    picture = served.snapshot()
    return picture if picture.policy == BEFORE else None


def _executed(served: Served) -> int | None:
    return served.snapshot().engines[0].executed_k


def _reverted(served: Served, version: int) -> HistoryEntry:
    entries = served.ask("policy_history", HistoryParams(limit=20), History).entries
    return next(entry for entry in entries if (entry.policy or 0) > version and entry.action != "advice")
