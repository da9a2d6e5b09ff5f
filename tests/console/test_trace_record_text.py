"""`specdeck trace record --with-text` on a running station: prompts and answers are where they were asked for, and
nowhere else; and nowhere at all where they were not."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import httpx
import pytest
from click.testing import CliRunner, Result

from console.cli.recorded_text import RecordedText
from console.cli.root import root
from console.cli.station import ask
from console.feed.protocol import History, HistoryParams
from console.feed.server import FeedError
from console.feed.texts import LEASE_SECONDS, Texts, TextsWanted
from console.station.text_recording import record_text
from engine.records import RECORD_TEXT_ACTION, TEXT_ACTION, Passage, TextRecord
from store.database import Store
from store.tables import TABLES
from store.trace import TraceWriter, file_records, read_records, trace_info
from tests.console.gateway_process import ask as ask_gateway
from tests.console.station_harness import StationUnderTest, until
from tests.store.builders import T0, engine, row, step
from tests.store.small_disk import small_disk

SPECDECK = Path(sys.executable).with_name("specdeck")
NEVER, ASKED, AFTERWARDS = "Amber-1001", "Cobalt-2002", "Crimson-3003"
"""What was said while nobody recorded text, while somebody did, and after that one was killed."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments))


@dataclass
class Recorded:
    place: Path
    station: StationUnderTest
    whole: Path
    """The recording with text."""
    shown: list[str] = field(default_factory=list)
    told: str = ""
    """What its command said on stderr."""
    forgotten: float = 0.0
    """After how many seconds a killed recording was over."""
    kept_afterwards: Texts = field(default_factory=Texts)

    def say(self, text: str, **fields: object) -> None:
        url = f"{self.station.options.base_url}/v1/chat/completions"
        body = {"messages": [{"role": "user", "content": text}], **fields}
        headers = {"authorization": f"Bearer key-{text}"}
        assert httpx.post(url, json=body, headers=headers, timeout=30, trust_env=False).status_code == 200

    def alerts(self) -> list[str]:
        seen = self.station.snapshot()
        found = [] if seen is None else [one for one in seen.alerts if one.kind == "text_recorded"]
        return [one.text for one in found if one.state == "firing"]

    def start(self, out: Path) -> subprocess.Popen[str]:
        command = [str(SPECDECK), "trace", "record", str(out), "--with-text"]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=0)
        until(self.alerts, "the notice that text is being recorded")
        return recorder


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name, pytest.MonkeyPatch.context() as patch:
        place = Path(name)
        for variable, folder in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            patch.setenv(f"SPECDECK_{variable}_DIR", str(place / folder))
        found = Recorded(place, StationUnderTest(place).start(), place / "whole.jsonl.zst")
        try:
            found.station.wait_serving()
            found.say(NEVER)
            plain = ["trace", "record", str(place / "plain.jsonl"), "--for", "1s"]
            until(lambda: run(*plain).exit_code == 0, "a recording, once the engine is in the store")
            recorder = found.start(found.whole)
            found.shown = found.alerts()
            found.say(ASKED, id="r0")
            found.say(ASKED, id="r1", stream=True)
            found.say(ASKED, messages=3, prompt="no messages")
            recorder.send_signal(signal.SIGINT)
            out, found.told = recorder.communicate(timeout=60)
            assert (recorder.returncode, out) == (0, f"{found.whole}\n"), found.told
            recorder = found.start(place / "killed.jsonl")
            found.say(AFTERWARDS)
            recorder.kill()
            recorder.wait()
            died = time.monotonic()
            until(lambda: not found.alerts(), "the end of a recording whose command was killed")
            found.forgotten = time.monotonic() - died
            found.say(AFTERWARDS)
            wanted = {"recording": "next", "after": 0, "end": True, "engine": "e0", "vanilla_engine": "v0"}
            found.kept_afterwards = Texts(**ask_gateway(place / "run" / "gateway", {"texts": wanted}))
            for kind in ("jsonl", "duckdb"):
                assert run("export", str(place / f"all.{kind}")).exit_code == 0
            yield found
        finally:
            found.station.close()


def texts(path: Path) -> list[TextRecord]:
    return [record for record in read_records(path) if isinstance(record, TextRecord)]


def test_whole_and_streamed_answers_are_in_it_beside_their_requests(recorded: Recorded) -> None:
    one, other = texts(recorded.whole)
    assert [(one.request, one.missing), (other.request, other.missing)] == [("r0", None), ("r1", None)]
    for text in (one, other):
        assert text.engine == "e0"
        assert text.prompt == [Passage(ASKED, "user")]
        assert text.output[0].text.startswith("echo of ")
        assert ASKED in text.output[0].text
    info = trace_info(recorded.whole)
    assert (info.texts, info.sequences) == (2, 2)
    assert info.notes == ["text left out: 1 request of a form that is not read"]
    assert "holds the text of 2 requests" in run("trace", "info", str(recorded.whole)).stdout
    assert json.loads(run("trace", "info", str(recorded.whole), "--json").stdout)["texts"] == 2


def test_a_part_of_it_has_the_text_of_that_part(recorded: Recorded, tmp_path: Path) -> None:
    out = tmp_path / "code.parquet"
    assert run("trace", "cut", str(recorded.whole), str(out), "--workload", "code").exit_code == 0
    assert [text.request for text in texts(out)] == ["r0"]
    assert run("trace", "convert", str(out), str(tmp_path / "w.jsonl"), "--without-text").exit_code == 0
    assert texts(tmp_path / "w.jsonl") == []
    assert ASKED not in (tmp_path / "w.jsonl").read_text()


def test_only_its_owner_reads_it_and_nothing_else_is_left(recorded: Recorded) -> None:
    assert stat.S_IMODE(recorded.whole.stat().st_mode) == 0o600
    names = [path.name for path in recorded.place.iterdir() if "whole" in path.name or "killed" in path.name]
    assert names == [recorded.whole.name]
    first = next(iter(read_records(recorded.whole)))
    assert getattr(first, "action", None) == TEXT_ACTION


def test_it_is_said_while_it_goes_on_and_stays_in_the_history(recorded: Recorded) -> None:
    assert "PROMPTS AND ANSWERS of requests that come in from now on are being recorded" in recorded.told
    assert f"they go into {recorded.whole}, which only you can read, and nowhere else" in recorded.told
    assert "it holds the text of 2 requests; text left out: 1 request" in recorded.told
    assert recorded.shown == [f"PROMPTS AND ANSWERS are being recorded by operator into {recorded.whole}"]
    entries = ask("policy_history", History, HistoryParams()).entries
    found = [entry.text.partition(" ")[2] for entry in entries if entry.action == RECORD_TEXT_ACTION][::-1]
    assert found[0] == f"operator: records prompts and answers into {recorded.whole}"
    assert "it has ended; prompts and answers of 2 requests" in found[1]
    assert "whoever recorded is gone" in found[3]


def test_a_killed_recording_is_over_within_seconds_and_nothing_is_kept_any_more(recorded: Recorded) -> None:
    assert recorded.forgotten < LEASE_SECONDS + 3
    assert recorded.kept_afterwards.texts == []
    assert not (recorded.place / "killed.jsonl").exists()


def test_text_is_in_no_store_no_log_and_no_export(recorded: Recorded) -> None:
    with Store.open(recorded.place / "all.duckdb", create=False, read_only=True) as store:
        stored = repr([store.connection.execute(f"FROM {table}").fetchall() for table in TABLES])
    assert RECORD_TEXT_ACTION in stored
    found = {"the store": stored}
    for path in recorded.place.rglob("*"):
        if path.is_file() and path != recorded.whole:
            found[str(path)] = path.read_bytes().decode("utf-8", "replace")
    assert len(found) > 5
    for secret in (NEVER, ASKED, AFTERWARDS, "echo of"):
        assert [where for where, text in found.items() if secret in text] == []
    assert "key-" not in "".join(repr(text) for text in texts(recorded.whole)), "headers are no text"
    assert NEVER not in repr(texts(recorded.whole))


def test_a_second_recording_is_refused_while_one_goes_on(recorded: Recorded) -> None:
    assert ask("record_text", Texts, TextsWanted(recording="a", file="/x.jsonl")).texts == []
    with pytest.raises(click.ClickException, match="are being recorded already"):
        ask("record_text", Texts, TextsWanted(recording="b", file="/y.jsonl"))
    assert ask("record_text", Texts, TextsWanted(recording="a", file="/x.jsonl", end=True)).texts == []
    assert recorded.alerts() == []


def test_a_station_that_only_observes_says_that_there_is_no_text() -> None:
    station: Any = SimpleNamespace(control=None)
    with pytest.raises(FeedError, match="no request passes through it"):
        asyncio.run(record_text(station, TextsWanted(recording="a", file="/x.jsonl"), "ada"))


class Station:
    """Answers `record_text` from a list; what is no answer is raised."""

    def __init__(self, *answers: Texts | click.ClickException) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[int, bool]] = []

    def ask(self, method: str, kind: type, wanted: TextsWanted, *, seconds: float) -> Texts:
        assert method == "record_text"
        self.asked.append((wanted.after, wanted.end))
        answer = self._answers.pop(0)
        if isinstance(answer, click.ClickException):
            raise answer
        return answer


def spoken(*times: float) -> list[TextRecord]:
    return [TextRecord("e0", T0 + ts, f"r{ts}", [Passage("why")], [Passage("so")]) for ts in times]


def collected(monkeypatch: pytest.MonkeyPatch, folder: Path, *answers: Texts | click.ClickException) -> Station:
    station = Station(*answers)
    monkeypatch.setattr("console.cli.station.ask", station.ask)
    monkeypatch.setattr("console.cli.recorded_text._FINISH_SECONDS", 0.0)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    out = folder / "out.parquet"
    texts = RecordedText(out)
    texts.begin()
    for _ in range(len(answers) - 3):
        texts.look()
    texts.finish()
    counts = texts.beside(out)
    with TraceWriter(counts) as writer:
        for record in (engine(), step(1, [row("a")], ts=T0 + 2)):
            writer.write(record)
    texts.write(counts)
    counts.unlink()
    assert list(folder.iterdir()) == [out]
    return station


def test_a_break_is_said_and_what_came_before_and_after_it_is_there_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone, form = click.ClickException("the gateway does not answer"), "of a form that is not read"
    station = collected(
        monkeypatch, tmp_path, Texts(since=T0), Texts(since=T0, texts=spoken(3, 1), last=2, left_out={form: 1}), gone,
        gone, Texts(since=T0 + 60, texts=spoken(4), last=3, left_out={form: 2}),
        Texts(since=T0 + 60, texts=spoken(2.5), last=4, left_out={form: 2}), Texts(since=T0 + 60, last=4),
    )  # fmt: skip
    assert station.asked == [(0, False), (0, False), (2, False), (2, False), (2, False), (3, True), (4, True)]
    found = list(file_records(tmp_path / "out.parquet"))
    assert [record.ts - T0 for record in found] == [0.0, 0.0, 1.0, 2.0, 2.5, 3.0, 4.0]
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "no text is recorded at the moment: the gateway does not answer; it is tried again"
    assert "is missing: nobody kept it" in said[1]
    assert said[2:] == ["it holds the text of 4 requests; text left out: 1 request of a form that is not read"]


def test_a_station_that_is_gone_at_the_end_leaves_what_was_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = click.ClickException("no station is running here")
    collected(monkeypatch, tmp_path, Texts(since=T0), Texts(since=T0, texts=spoken(1), last=1), gone, gone)
    assert [text.request for text in texts(tmp_path / "out.parquet")] == ["r1"]
    assert "the last texts are missing: no station is running here" in capsys.readouterr().err


def test_a_full_disk_leaves_text_out_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        file = (disk.path / "unnamed").open("w+b")
        disk.fill()
        monkeypatch.setattr("console.cli.recorded_text.tempfile.TemporaryFile", lambda dir: file)
        (tmp_path / "out").mkdir()
        first, second = spoken(1, 2)
        answers = Texts(since=T0), Texts(since=T0, texts=[first], last=1), Texts(since=T0, texts=[second], last=2)
        collected(monkeypatch, tmp_path / "out", *answers, Texts(since=T0, last=2))
    said = capsys.readouterr().err
    assert said.count("text is left out from now on") == 1
    assert "No space left on device" in said
    assert "it holds the text of 0 requests; text left out: 2 requests for which there was no room on the disk" in said


def test_a_folder_that_takes_nothing_is_said_before_anything_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match=r"/nowhere: can't be written: No such file or directory"):
        RecordedText(tmp_path / "nowhere" / "out.jsonl")
