"""How a rehearsal goes on from step to step, with passes that only say that they were made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from console.feed.messages import RehearsalView
from console.rehearsing.passes import whole as module
from console.rehearsing.passes.folder import RehearsalFolder
from console.rehearsing.passes.host import HostFailed, Served
from console.rehearsing.passes.one_pass import Overruled, Spoilt
from console.rehearsing.passes.order import DuePass, passes
from console.rehearsing.passes.pace import Pace
from console.rehearsing.passes.telling import Telling, line, span
from console.rehearsing.passes.whole import NO_PROPOSAL, Beginning, Refused, Stopped, Whole
from store.operating_map.fingerprint import Fingerprint
from store.rehearsal.plan import PROPOSED, WITHOUT, Mix, Phase, Plan
from store.rehearsal.reading import RehearsalError
from store.rehearsal.records import FallbackVerdict, Pass, Rehearsal
from tests.console.scenes import engine
from tests.console.test_rehearsal_folder import FINGERPRINT

PLAN = Plan(
    name="p", arms=(WITHOUT, "k0", "k2", PROPOSED), mix=(Mix(name="chat", share=1.0, prompts="chat", max_tokens=(8,)),),
    phases=(Phase(name="busy", seconds=10.0, rate=1.0),), repeats=2, scale=1.0,
)  # fmt: skip


class Silent:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def now(self, text: str) -> None:
        pass


class Rig:
    """A rehearsal whose passes take no time. `did`: engines that were brought and steps that were made."""

    kind: Literal["own"] = "own"
    prefix = ""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = RehearsalFolder(folder / "one")
        self.fingerprint = FINGERPRINT
        self.proposal: list[tuple[int, int, int]] | None = [(1, 8, 2)]
        self.did: list[str] = []
        self.spoilt: dict[int, int] = {}
        """By pass: how often it is spoilt."""
        self.screen = Silent()
        self._up: bool | None = None
        patch.setattr(module, "one_pass", self._one_pass)
        patch.setattr(module, "fallback_phase", self._fallback)
        patch.setattr(module, "propose", lambda _: self.proposal)
        patch.setattr(module, "draw", lambda *_: [])

    def run(self, plan: Plan = PLAN) -> Rehearsal:
        self.did, self._up = [], None
        pace = Pace(plan, starts_engines=True)
        view = RehearsalView(id="one", plan="p", state="starting", passes=len(passes(plan)))
        telling = Telling(view, plan, pace, self.screen, time.monotonic)
        return asyncio.run(Whole(self, self.folder, Beginning(plan, []), telling, pace).run())

    async def bring(self, drafting: bool, tell: Callable[[str], None]) -> Served:
        if drafting != self._up:
            self.did.append("engine" if drafting else "engine without")
        self._up = drafting
        return Served(self, "http://nowhere", None, engine())  # type: ignore[arg-type]

    async def leave(self) -> None:
        pass

    async def request(self, method: str, params: Any, kind: type[Any], timeout: float = 5.0) -> Fingerprint:
        assert method == "fingerprint"
        return self.fingerprint

    async def _one_pass(self, served: Served, due: DuePass, place: Path, setting: Any) -> Pass:
        self.did.append(f"{due.arm}/{due.repeat}")
        if self.spoilt.get(due.number, 0):
            self.spoilt[due.number] -= 1
            raise Spoilt("the engine died")
        return Pass(
            number=due.number, arm=due.arm, repeat=due.repeat, stage=due.stage, policy=None, engine="e0", start=1.0,
            end=2.0,
        )  # fmt: skip

    async def _fallback(self, served: Served, tell: Callable[[str], None]) -> FallbackVerdict:
        self.did.append("fallback")
        return FallbackVerdict(passed=True)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch)


def test_engines_are_started_as_seldom_as_can_be(rig: Rig) -> None:
    made = rig.run()
    assert rig.did == [
        "engine", "k0/1", "k2/1", "engine without", "without/1", "without/2", "engine", "proposed/2", "k2/2", "k0/2",
        "fallback",
    ]  # fmt: skip
    assert (made.proposal, made.ended is not None) == ([(1, 8, 2)], True)
    assert rig.folder.rehearsal() == made
    assert rig.run() == made
    assert rig.did == []  # nothing is left: no engine is started to see that


def test_without_a_proposal_its_arm_is_left_out_and_noted_once(rig: Rig) -> None:
    rig.proposal = None
    made = rig.run()
    assert not any("proposed" in step for step in rig.did)
    assert made.notes == [NO_PROPOSAL]
    assert rig.run().notes == [NO_PROPOSAL]


def test_a_pass_that_was_spoilt_is_made_again_once(rig: Rig) -> None:
    rig.spoilt = {2: 1}
    rig.run()
    assert rig.did[:4] == ["engine", "k0/1", "k2/1", "k2/1"]
    assert any("does not count, it is made again: the engine died" in text for text in rig.screen.said)


def test_one_that_is_spoilt_again_stops_it_and_it_goes_on_from_there(rig: Rig) -> None:
    rig.spoilt = {2: 2}
    with pytest.raises(Stopped, match=r"pass 2 \(arm k2, repeat 1\) was spoilt 2 times: the engine died"):
        rig.run()
    assert list(rig.folder.done()) == [1]
    rig.run()
    assert rig.did[:3] == ["engine", "k2/1", "engine without"]
    assert len(rig.folder.done()) == len(passes(PLAN))


def test_what_somebody_else_set_is_not_borrowed_over_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def overruled(served: Served, due: DuePass, place: Path, setting: Any) -> Pass:
        rig.did.append(due.arm)
        raise Overruled("the mode was changed to static:0 by somebody else meanwhile")

    monkeypatch.setattr(module, "one_pass", overruled)
    with pytest.raises(Stopped, match="pass 1 does not count: the mode was changed"):
        rig.run()
    assert rig.did == ["engine", "k0"], "not tried again"


def test_a_pass_that_can_not_be_read_any_more_is_refused_by_name(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path) -> None:
        raise RehearsalError("01-k0-r1/trace.jsonl.zst: empty; remove its pass.json and resume")

    monkeypatch.setattr(module, "propose", broken)
    with pytest.raises(Refused, match=r"remove its pass\.json"):
        rig.run()


def test_a_fallback_test_that_broke_off_is_made_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(served: Served, tell: Callable[[str], None]) -> FallbackVerdict:
        raise HostFailed("the fallback test broke off: the station stopped answering")

    with monkeypatch.context() as patch:
        patch.setattr(module, "fallback_phase", lost)
        with pytest.raises(Stopped, match="broke off"):
            rig.run()
    assert rig.folder.rehearsal().fallback is None
    assert rig.run().fallback == FallbackVerdict(passed=True)
    assert rig.did == ["engine", "fallback"]


def test_another_engine_than_it_was_begun_on_is_refused(rig: Rig) -> None:
    rig.spoilt = {2: 2}
    with pytest.raises(Stopped):
        rig.run()
    before = rig.folder.rehearsal()
    rig.fingerprint = replace(FINGERPRINT, hardware="another machine")
    with pytest.raises(Refused, match="hardware: cpu then, another machine now"):
        rig.run()
    assert rig.did == ["engine"]
    assert rig.folder.rehearsal() == before


def test_an_engine_that_does_not_come_up_stops_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuses(drafting: bool, tell: Callable[[str], None]) -> Served:
        raise HostFailed("engine e0 does not start: out of memory (log: x)")

    monkeypatch.setattr(rig, "bring", refuses)
    with pytest.raises(Stopped, match="out of memory"):
        rig.run()
    assert not rig.folder.begun()


def test_the_line_that_goes_on_says_what_a_person_waits_for() -> None:
    view = RehearsalView(
        id="one", plan="p", state="running", pass_number=2, passes=7, arm="k2", phase="busy", sent=9, done=7, errors=1,
        seconds_left=100.0,
    )  # fmt: skip
    assert line(view) == "pass 2 of 7 · k2 · busy · 7/9 answered · 1 failed · 2 min left"
    assert line(replace(view, state="fallback_test")) == "fallback test · 2 min left"
    assert [span(seconds) for seconds in (0.4, 89.0, 3590.0, 3900.0)] == ["0 s", "89 s", "1 h 00 min", "1 h 05 min"]
