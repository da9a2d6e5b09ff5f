"""What a terminal is really written: the bell and OSC 9 on an alert, OSC 52 on `y`; and nothing of it in a replay."""

from __future__ import annotations

import asyncio
import base64
import re
import sys
import tempfile
from pathlib import Path

import pytest

from tests.console.fake_station import FakeStation
from tests.console.pseudo_terminal import LEFT_CLEAN, Terminal

CONSOLE = """
import sys
from pathlib import Path
from console.app.main import run_console
from console.notices.settings import NotifySettings
run_console(Path(sys.argv[1]) / "feed", Path(sys.argv[1]) / "snapshots", notify=NotifySettings(desktop="critical"))
"""
OSC = re.compile(rb"\x1b\][^\x07]*\x07")


async def test_a_critical_alert_rings_and_tells_the_desktop_and_y_fills_the_clipboard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        station = FakeStation(Path(name))
        await station.start()
        terminal = Terminal([sys.executable, "-c", CONSOLE, name])
        try:
            await asyncio.to_thread(terminal.read_until, b"creative")
            terminal.type("y")
            await asyncio.to_thread(terminal.read_until, b"\x1b]52;c;")
            assert b"\x07" not in OSC.sub(b"", terminal.output), "all is well"
            station.play("alerting")
            told = "\x1b]9;specdeck: ■ engine e0 is down".encode()
            await asyncio.to_thread(terminal.read_until, told)
            copied = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", terminal.output)
            assert copied is not None
            assert base64.b64decode(copied[1]).startswith(b"workload: code\n")
            assert OSC.sub(b"", terminal.output).count(b"\x07") == 1, "one critical alert among three"
            assert terminal.output.count(b"\x1b]9;") == 1
            terminal.type("qd")
            await asyncio.to_thread(terminal.read_until, LEFT_CLEAN)
        finally:
            terminal.end()
            await station.stop()
