"""A borrowed policy is given back as it was, whatever the station, the operator or an interrupt does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.feed.client import FeedError, Update
from console.feed.messages import Snapshot, UnconfirmedView, WorkloadView
from console.feed.protocol import Method, PolicyConfirm, PolicyResult, PolicySet
from console.rehearsing.loan import Loan, LoanRefused
from console.rehearsing.terms import Terms, word
from engine.records import PolicyMode
from tests.console.scenes import live

STATIC = PolicyMode(mode="static", k=4)
OFF = PolicyMode(mode="off")
OTHER = PolicyMode(mode="static", k=2)
BORROWED = Terms(policy=OFF, cap=0, lanes={"drill": "vanilla"})


class FakeStation:
    """Keeps a policy as a station does, deadline included. `failing`: that many requests from now on get no answer;
    `lost`: they are carried out all the same."""

    def __init__(self) -> None:
        self.seen = live(policy=STATIC, cap=None, fallback=False, policy_version=1, workloads=[], unconfirmed=None)
        self.failing = 0
        self.lost = False

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Any], timeout: float = 5.0
    ) -> Any:
        await asyncio.sleep(0)
        failing, self.failing = self.failing > 0, max(0, self.failing - 1)
        answer = self._answer(params) if self.lost or not failing else None
        if failing or answer is None:
            raise FeedError("deadline", "no answer")
        return answer

    def snapshots(self) -> AsyncGenerator[Update, None]:
        raise NotImplementedError

    def put(self, params: PolicySet) -> None:
        """Make a change, as a request does."""
        self._answer(params)

    def revert(self) -> None:
        """Take back what waits to be confirmed."""
        if self.seen.unconfirmed is not None:
            self._set(policy=STATIC, cap=None, workloads=[], unconfirmed=None)

    def _answer(self, params: msgspec.Struct | None) -> Any:
        if params is None:
            return self.seen
        asked = (
            params.expect
            if isinstance(params, PolicySet)
            else params.version
            if isinstance(params, PolicyConfirm)
            else None
        )
        if asked is not None and asked != self.seen.policy_version:
            raise FeedError("refused", "look again")
        if isinstance(params, PolicyConfirm):
            self._set(unconfirmed=None)
        if isinstance(params, PolicySet):
            self._change(params)
        waits = self.seen.unconfirmed
        assert self.seen.policy is not None
        return PolicyResult(
            self.seen.policy_version or 0, self.seen.policy, self.seen.cap, self.seen.fallback,
            None if waits is None else waits.confirm_by,
        )  # fmt: skip

    def _change(self, params: PolicySet) -> None:
        changes: dict[str, Any] = {}
        if params.policy is not None:
            changes["policy"] = params.policy
        if params.cap is not msgspec.UNSET:
            changes["cap"] = params.cap
        if params.lanes:
            changes["workloads"] = [WorkloadView(name=name, lane=lane) for name, lane in params.lanes.items()]
        if params.confirm is not None:
            deadline = 1000.0 + params.confirm + (self.seen.policy_version or 0)
            changes["unconfirmed"] = UnconfirmedView(confirm_by=deadline, reverts_to=STATIC)
        self._set(**changes)

    def _set(self, **changes: Any) -> None:
        self.seen = msgspec.structs.replace(self.seen, **changes, policy_version=(self.seen.policy_version or 0) + 1)


def lane(seen: Snapshot) -> str:
    return next((view.lane for view in seen.workloads if view.name == "drill"), "speculative")


MEANWHILE = st.lists(st.sampled_from(["mode", "cap", "revert", "silence", "other"]), max_size=4)


@given(MEANWHILE, st.booleans())
def test_afterwards_all_is_as_it_was_but_for_what_others_set(meanwhile: list[str], lost: bool) -> None:
    station = FakeStation()
    told: list[str] = []

    async def lend() -> Loan:
        loan = Loan(station, BORROWED, "a try", told.append)
        async with loan:
            assert (station.seen.policy, station.seen.cap, lane(station.seen)) == (OFF, 0, "vanilla")
            for event in meanwhile:
                if event == "mode":
                    station.put(PolicySet(policy=OTHER))
                elif event == "cap":
                    station.put(PolicySet(cap=3))
                elif event == "other":
                    station.put(PolicySet(lanes={"drill": "vanilla"}))
                elif event == "revert":
                    station.revert()
                else:
                    station.failing, station.lost = 2, lost
        return loan

    loan = asyncio.run(lend())
    # The station takes back all at once, and once: after that nothing waits any more.
    kept = meanwhile[meanwhile.index("revert") + 1 :] if "revert" in meanwhile else meanwhile
    assert station.seen.policy == (OTHER if "mode" in kept else STATIC)
    assert station.seen.cap == (3 if "cap" in kept else None)
    assert station.seen.unconfirmed is None
    assert told == []
    if not meanwhile or set(meanwhile) <= {"other"}:
        assert loan.trouble == []
    if "mode" in kept:
        assert any("the mode was changed to static:2 by somebody else" in text for text in loan.trouble)


@pytest.mark.parametrize("lost", [True, False])
def test_a_change_without_an_answer_is_given_back_all_the_same(lost: bool) -> None:
    station = FakeStation()

    async def lend() -> None:
        loan = Loan(station, BORROWED, "a try", lambda text: None)
        await station.request("snapshot", None, Snapshot)
        original = station.request

        async def second_fails(method: Method, params: Any, kind: Any, timeout: float = 5.0) -> Any:
            if isinstance(params, PolicySet) and params.confirm is not None:
                station.failing, station.lost = 1, lost
            return await original(method, params, kind, timeout)

        station.request = second_fails  # type: ignore[method-assign]
        async with loan:
            raise AssertionError("it was not borrowed")

    with pytest.raises(FeedError, match="no answer"):
        asyncio.run(lend())
    assert (station.seen.policy, station.seen.cap, lane(station.seen)) == (STATIC, None, "speculative")
    assert station.seen.unconfirmed is None


def test_what_a_station_refuses_is_not_borrowed() -> None:
    class Refusing(FakeStation):
        def _change(self, params: PolicySet) -> None:
            raise FeedError("bad_params", "no such mode")

    async def lend() -> None:
        async with Loan(Refusing(), BORROWED, "a try", lambda text: None):
            raise AssertionError("it was not borrowed")

    with pytest.raises(LoanRefused, match="no such mode"):
        asyncio.run(lend())


def test_values_are_named_as_they_are_typed() -> None:
    assert [word(value) for value in (0, 1, None, True, OTHER, "vanilla")] == [
        "0", "1", "none", "on", "static:2", "vanilla",
    ]  # fmt: skip


def kept(station: FakeStation, told: list[str]) -> Loan:
    return Loan(station, BORROWED, "a long try", told.append, kept=True)


def test_a_loan_that_is_kept_outlives_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.rehearsing.loan.RENEW_SECONDS", 0.01)
    monkeypatch.setattr("console.rehearsing.loan._AGAIN_SECONDS", 0.01)
    station = FakeStation()

    async def lend() -> Loan:
        async with kept(station, []) as loan:
            for lost in (False, True):
                before = station.seen.unconfirmed
                station.failing, station.lost = 3, lost
                async with asyncio.timeout(5):
                    while station.failing or station.seen.unconfirmed == before:
                        await asyncio.sleep(0.01)
                assert (station.seen.policy, station.seen.cap, lane(station.seen)) == (OFF, 0, "vanilla")
        return loan

    assert asyncio.run(lend()).trouble == []
    assert (station.seen.policy, station.seen.cap, station.seen.unconfirmed) == (STATIC, None, None)


@pytest.mark.parametrize("meanwhile", ["mode", "confirmed", "reverted"])
def test_a_loan_that_somebody_else_ended_is_not_kept(meanwhile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.rehearsing.loan.RENEW_SECONDS", 0.01)
    station = FakeStation()

    async def lend() -> Loan:
        async with kept(station, []) as loan:
            if meanwhile == "mode":
                station.put(PolicySet(policy=OTHER))
            elif meanwhile == "confirmed":
                station._set(unconfirmed=None)
            else:
                station.revert()
            version = station.seen.policy_version
            await asyncio.sleep(0.1)
            assert station.seen.policy_version == version
        return loan

    loan = asyncio.run(lend())
    assert station.seen.policy == (OTHER if meanwhile == "mode" else STATIC)
    assert bool(loan.trouble) == (meanwhile != "confirmed")
