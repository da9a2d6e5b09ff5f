"""What speculation cost and saved, asked of a station, of a replay and on the command line: one answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from console.cli.root import root
from console.feed.protocol import BalanceParams, ReplayAct
from console.feed.server import FeedError
from console.replaying import queries as replaying
from console.replaying.acts import replay_act
from console.replaying.opened import opened
from console.replaying.player import Player
from console.station import bucket_queries
from console.station.recorder import open_recorder
from store.balance.records import Balance
from tests.store.builders import T0, announcement, arrived, frame, row

WINDOW = 10.0
END = T0 + 50


class Everywhere:
    """One record: in a station, in a replay that stands at its end, and in a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store.duckdb"
        recorder = open_recorder(self.path, lambda kind, text: None)
        names = [arrived(0, "code"), arrived(1, "chat"), arrived(2, "plain")]
        recorder.ingest.announcement(announcement(names, max_k=4), T0)
        idle = [row(str(n), d=0, a=0, k=0) for n in range(3)]
        for number in range(1, 501):
            ts, quiet = T0 + number * 0.1, number <= 400
            rows = idle if quiet else [row("0", d=4, a=number % 5), row("1", d=2, a=0), idle[2]]
            k = 0 if quiet else 4
            recorder.ingest.frame(
                frame(number, rows, ts=ts, duration_ms=30.0 if quiet else 50.0 + number % 7, k_verify=k, k_draft=k), ts
            )
        recorder.ingest.flush()
        recorder.house.fit_soon()
        recorder.house.after_flush(recorder.lock)
        station: Any = SimpleNamespace(recorder=recorder, control=SimpleNamespace())
        params = BalanceParams(window=WINDOW, at=END)
        self.live: Balance = asyncio.run(bucket_queries.balance(station, params, "ann"))
        self.earlier: Balance = asyncio.run(
            bucket_queries.balance(station, BalanceParams(window=5.0, at=T0 + 47.0), "ann")
        )
        self.refusals = [refused(station, params) for params in (BalanceParams(window=0), BalanceParams(most_rows=0))]
        station.control = None
        self.refusals.append(refused(station, params))
        recorder.store.close()
        with opened(self.path, None, lambda: None) as found:
            player = Player(found)
            replay_act(player, ReplayAct(act="seek", share=1.0))
            self.replayed = replaying.balance(player, BalanceParams(window=WINDOW))
            replay_act(player, ReplayAct(act="seek", ts=T0 + 47.0))
            self.replayed_earlier = replaying.balance(player, BalanceParams(window=5.0))

    def printed(self, *options: str) -> Any:
        return CliRunner().invoke(root, ["report", str(self.path), "--costs", *options])


def refused(station: Any, params: BalanceParams) -> FeedError:
    with pytest.raises(FeedError) as told:
        asyncio.run(bucket_queries.balance(station, params, "ann"))
    return told.value


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> Everywhere:
    return Everywhere(tmp_path_factory.mktemp("everywhere"))


def plain(balance: Balance) -> Any:
    """But for its source; sums may differ in the last place."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.9g}")
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return {name: rounded(item) for name, item in value.items()} if isinstance(value, dict) else value

    built = msgspec.to_builtins(balance)
    return rounded({name: value for name, value in built.items() if name != "source"})


def test_a_station_and_a_replay_say_the_same(everywhere: Everywhere) -> None:
    assert everywhere.live.total.state == "few"
    assert everywhere.live.total.saved is not None
    assert plain(everywhere.live) == plain(everywhere.replayed)
    assert plain(everywhere.earlier) == plain(everywhere.replayed_earlier)
    assert everywhere.earlier.steps == 50


def test_the_command_line_says_the_same(everywhere: Everywhere) -> None:
    ran = everywhere.printed("--window", "10s", "--at", str(END), "--json")
    assert ran.exit_code == 0, ran.output
    assert plain(msgspec.convert(json.loads(ran.stdout), Balance)) == plain(everywhere.live)
    assert json.loads(ran.stdout)["source"] == str(everywhere.path)


def test_as_text_it_names_the_workloads_and_who_paid(everywhere: Everywhere) -> None:
    text = everywhere.printed("--window", "10s").stdout
    assert "Who paid for whose drafts" in text
    table = text[text.index("Who paid") :].splitlines()
    assert table[1].split() == ["paid", "by", "code", "chat", "together"]
    assert {line.split()[0] for line in table[2:6]} == {"code", "chat", "plain", "together"}
    assert "few: not to be relied on" in text, text


@pytest.mark.parametrize("odd", [("--csv",), ("--by", "workload")], ids=["csv", "by"])
def test_what_it_can_not_do_is_said(everywhere: Everywhere, odd: tuple[str, ...]) -> None:
    ran = everywhere.printed(*odd)
    assert ran.exit_code == 2
    assert "--costs" in ran.stderr


def test_a_station_says_why_it_can_not_answer(everywhere: Everywhere) -> None:
    window, most_rows, observing = everywhere.refusals
    assert (window.code, most_rows.code, observing.code) == ("bad_params", "bad_params", "refused")
    assert "more than 0 seconds" in str(window)
    assert "only observes" in str(observing)
