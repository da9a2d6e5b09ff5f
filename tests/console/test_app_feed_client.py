"""The feed client on real sockets, against the fake station of `fake_station.py`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from console.feed.client import FeedClient, FeedError, Silence, Update
from console.feed.messages import FEED_VERSION, Series, Snapshot
from console.feed.protocol import Hello, PolicyResult, PolicySet, SeriesParams
from engine.records import PolicyMode
from tests.console.fake_station import FakeStation

DEADLINE = 30.0


@pytest.fixture
async def directory() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:  # a longer path would be no socket's
        yield Path(name)


@pytest.fixture
async def station(directory: Path) -> AsyncIterator[FakeStation]:
    station = FakeStation(directory, interval=0.02)
    await station.start()
    yield station
    await station.stop()


@pytest.fixture
async def client(directory: Path) -> AsyncIterator[FeedClient]:
    async with FeedClient(directory / "feed", directory / "snapshots", silence_seconds=0.3) as client:
        yield client


async def first(client: FeedClient, wanted: Callable[[Update], bool]) -> Update:
    """The first update that is wanted."""

    async def wait() -> Update:
        async for update in client.snapshots():
            if wanted(update):
                return update
        raise AssertionError("the stream ended")

    return await asyncio.wait_for(wait(), DEADLINE)


async def test_snapshots_come_complete(station: FakeStation, client: FeedClient) -> None:
    update = await first(client, lambda update: isinstance(update, Snapshot))
    assert isinstance(update, Snapshot)
    assert [bucket.key.workload for bucket in update.buckets][:2] == ["code", "repeat"]


async def test_silence_is_said_and_a_new_station_on_the_same_sockets_is_heard(
    directory: Path, client: FeedClient
) -> None:
    one = FakeStation(directory, name="one", interval=0.02)
    await one.start()
    seen: list[str] = []

    async def follow() -> None:
        nonlocal one
        async for update in client.snapshots():
            if isinstance(update, Silence):
                if seen and seen[-1] == "one":
                    assert update.since is not None
                    seen.append("silence")
                    one = FakeStation(directory, name="two", interval=0.02)
                    await one.start()
            elif not seen or seen[-1] != update.station:
                seen.append(update.station)
                if update.station == "two":
                    return
                await one.stop()

    await asyncio.wait_for(follow(), DEADLINE)
    assert seen == ["one", "silence", "two"]
    hello = await client.hello(DEADLINE)
    assert hello.station == "two"
    await one.stop()


async def test_without_a_station_there_is_silence_since_ever(client: FeedClient) -> None:
    update = await first(client, lambda update: True)
    assert isinstance(update, Silence)
    assert update.since is None


async def test_requests_get_their_own_answers(station: FakeStation, client: FeedClient) -> None:
    asked = [client.request("series", SeriesParams(points=points), Series, DEADLINE) for points in (10, 20, 30)]
    answers = await asyncio.gather(*asked, client.hello(DEADLINE))
    assert [len(answer.points) for answer in answers[:3]] == [10, 20, 30]  # type: ignore[union-attr]
    assert isinstance(answers[3], Hello)


async def test_a_policy_is_set_and_an_outdated_picture_refused(station: FakeStation, client: FeedClient) -> None:
    change = PolicySet(policy=PolicyMode(mode="static", k=2), expect=3)
    result = await client.request("policy_set", change, PolicyResult, DEADLINE)
    assert (result.version, result.policy.k) == (4, 2)
    with pytest.raises(FeedError, match="has changed in the meantime") as refused:
        await client.request("policy_set", change, PolicyResult, DEADLINE)
    assert refused.value.code == "refused"


async def test_fields_that_are_not_given_do_not_travel(station: FakeStation, client: FeedClient) -> None:
    await client.request("policy_set", PolicySet(policy=PolicyMode(mode="off"), expect=3), PolicyResult, DEADLINE)
    assert "cap" not in station.requests[-1].params


async def test_without_a_station_a_request_is_unreachable_and_says_what_to_do(client: FeedClient) -> None:
    with pytest.raises(FeedError, match="specdeck serve") as error:
        await client.request("hello", None, Hello, 0.2)
    assert error.value.code == "unreachable"


async def test_a_change_meant_for_a_dead_station_does_not_reach_its_heir(directory: Path, client: FeedClient) -> None:
    with pytest.raises(FeedError):
        await client.request("policy_set", PolicySet(policy=PolicyMode(mode="off")), PolicyResult, 0.2)
    station = FakeStation(directory)
    await station.start()
    await client.hello(DEADLINE)
    assert [request.method for request in station.requests] == ["hello"]
    await station.stop()


async def test_a_station_that_does_not_answer_is_not_waited_for(station: FakeStation, client: FeedClient) -> None:
    station.mute = True
    with pytest.raises(FeedError) as error:
        await client.request("hello", None, Hello, 0.3)
    assert error.value.code == "deadline"
    station.mute = False
    assert (await client.hello(DEADLINE)).station == "s1"


async def test_a_console_too_old_is_told_so(station: FakeStation, client: FeedClient) -> None:
    station.hello = replace(station.hello, version=9, min_version=9)
    with pytest.raises(FeedError, match="too old") as error:
        await client.hello(DEADLINE)
    assert error.value.code == "version"
    update = await first(client, lambda update: isinstance(update, Silence))
    assert isinstance(update, Silence)
    assert "too old" in update.reason


async def test_a_console_too_new_is_told_so(station: FakeStation, client: FeedClient) -> None:
    station.hello = replace(station.hello, version=0, min_version=0)
    with pytest.raises(FeedError, match="too new"):
        await client.hello(DEADLINE)


async def test_a_snapshot_of_another_version_is_not_misread(station: FakeStation, client: FeedClient) -> None:
    station.version = FEED_VERSION + 1
    update = await first(client, lambda update: True)
    assert isinstance(update, Silence)
    assert update.incompatible
    assert "this console is too old" in update.reason


async def test_a_reply_of_another_shape_is_an_error_and_no_crash(station: FakeStation, client: FeedClient) -> None:
    with pytest.raises(FeedError, match="can't be read") as error:
        await client.request("hello", None, Series, DEADLINE)
    assert error.value.code == "version"
