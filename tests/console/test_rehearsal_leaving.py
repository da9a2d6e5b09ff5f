"""How a rehearsal with a station of its own leaves: nothing of its own is left, and nothing of others is touched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from console.cli import outcomes, rehearse_host
from console.cli.rehearse_host import OwnStation
from console.cli.rehearse_screen import StderrScreen
from console.station.options import StationOptions


class Closed:
    async def close(self) -> None:
        pass


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was ended."""
    found: list[str] = []
    monkeypatch.setattr(rehearse_host, "end_everything", lambda tell: found.append("everything"))
    return found


def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: str | None) -> str:
    """The options that a console would start again with, once the rehearsal has left. `now`: the store of the station
    that runs by then."""
    monkeypatch.setenv("SPECDECK_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(
        rehearse_host,
        "running_station",
        lambda: None if now is None else SimpleNamespace(pid=7, info=SimpleNamespace(store=now)),
    )
    options = tmp_path / "run" / rehearse_host.OPTIONS_FILE
    options.parent.mkdir()
    options.write_text("of before")
    host = OwnStation(StationOptions(store="x"), tmp_path, lambda text: None)
    options.write_text("of now")
    launcher = SimpleNamespace(options=SimpleNamespace(store="ours"))
    host._up = (True, Closed(), launcher)  # type: ignore[assignment]
    asyncio.run(host.leave())
    return options.read_text()


@pytest.mark.parametrize("now", ["ours", None])
def test_its_own_station_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: list[str], now: str | None
) -> None:
    assert left(tmp_path, monkeypatch, now) == "of before"
    assert ended == ["everything"]


def test_a_station_that_somebody_else_has_started_since_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    assert left(tmp_path, monkeypatch, "/var/lib/specdeck.duckdb") == "of now"
    assert ended == []


class Gone:
    """A terminal that has gone."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError

    def write(self, text: str) -> None:
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone_breaks_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(text: str, err: bool) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(outcomes.click, "echo", gone)
    monkeypatch.setattr(outcomes, "_quiet", lambda descriptor: None)
    screen = StderrScreen(Gone())  # type: ignore[arg-type]
    screen.now("pass 1 of 2")
    screen.say("a line")
    screen.end()
    outcomes.say("stopping the station")
