"""`specdeck bundle`: one file with everything for a bug report, nothing private in it, whatever could not be had."""

from __future__ import annotations

import json
import re
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from console.cli.launcher import OPTIONS_FILE, Launcher
from console.cli.leftovers import end_all
from console.cli.root import root
from console.cli.station import ask, running_station, stop_station
from console.feed.protocol import ProcessesResult
from console.statefile import RunningStation, StationInfo
from console.station.options import StationOptions, write_options
from engine.doctor import Check
from engine.records import ControlRecord, Record
from store.bundle.contents import PARTS, README, TRACE
from store.database import Store
from store.export import export
from store.figures import Report
from store.ingest import Ingest
from store.report import report
from store.trace import TraceWriter, read_records
from tests.console import scenes
from tests.console.station_harness import ENGINE_COMMAND, free_port, until
from tests.store.builders import T0, engine, row, sequence, step

KEY = "Zx81-station-key"
PRIVATE = (KEY, "acme", "jdoe", "jane", "hunter2", "192.0.2.7", "chatcmpl")


def records() -> list[Record]:
    """Two hours, a step a minute."""
    return [
        engine(target="/data/acme/llama@ab12:-:bf16:-"),
        sequence("chatcmpl-1", "acme-chat", request="chatcmpl-1"),
        sequence("chatcmpl-2", "acme-code"),
        sequence("chatcmpl-3", "acme-old"),
        step(0, [row("chatcmpl-3")], ts=T0 + 30),
        *(step(n, [row("chatcmpl-1", a=n % 5), row("chatcmpl-2", d=2, a=1)], ts=T0 + n * 60) for n in range(1, 121)),
        ControlRecord(
            T0 + 7000, "jane", "mode", why=f"acme-chat is slow since acme-old, for jane at 192.0.2.7, password={KEY}"
        ),
    ]


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine of jdoe's, with nothing running on it."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        folder = Path(name)
        for variable, inner in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            (folder / inner).mkdir(mode=0o700)
            monkeypatch.setenv(f"SPECDECK_{variable}_DIR", str(folder / inner))
        (folder / "work").mkdir()
        monkeypatch.chdir(folder / "work")
        monkeypatch.setenv("HOME", "/home/jdoe")
        monkeypatch.setenv("USER", "jdoe")
        monkeypatch.setenv("SPECDECK_API_KEY", KEY)
        yield folder


@pytest.fixture
def trace(place: Path) -> Path:
    path = place / "acme-night.jsonl.zst"
    with TraceWriter(path) as writer:
        for record in sorted(records(), key=lambda record: record.ts):
            writer.write(record)
    return path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments), prog_name="specdeck")


def made(*arguments: str) -> Path:
    """The bundle that `specdeck bundle` with these arguments wrote, by its standard output."""
    result = invoke("bundle", *arguments)
    assert result.exit_code == 0, result.output
    return Path(result.stdout.strip())


def text_of(path: Path) -> dict[str, str]:
    """Every member as text, the records decompressed."""
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist() if name != TRACE}
        if TRACE in archive.namelist():
            texts[TRACE] = "\n".join(map(repr, read_records(path)))
    return texts


def leaks(texts: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, word) for name, text in texts.items() for word in PRIVATE if word in text.lower() or word in text]


# Of a file


def test_of_a_trace_it_holds_the_last_hour_without_anything_private(trace: Path) -> None:
    path = made(str(trace))
    texts = text_of(path)
    assert set(texts) == {README, TRACE, "report.json", "versions.json"}
    assert leaks(texts) == []
    figures = json.loads(texts["report.json"])
    assert [bucket["workload"] for bucket in figures["buckets"]] == ["tag-1", "tag-2"]
    assert figures["total"]["decode_rows"] == 2 * 60
    assert "tag-1 is slow since tag-3, for <user> at <address>, password=<secret>" in texts[TRACE]


def test_every_command_that_opens_a_trace_opens_the_bundle(trace: Path) -> None:
    path = made(str(trace), "out.zip")
    assert path == Path("out.zip").absolute()
    figures = json.loads(text_of(path)["report.json"])
    shown = invoke("report", "out.zip", "--json")
    replayed = invoke("replay", "out.zip", "--headless", "--json")
    assert (shown.exit_code, replayed.exit_code) == (0, 0)
    for report_ in (json.loads(shown.stdout), json.loads(replayed.stdout)["report"]):
        assert report_["buckets"] == figures["buckets"]
    info = invoke("trace", "info", "out.zip", "--json")
    assert json.loads(info.stdout)["steps"] == 60
    again = made("out.zip", "--hours", "0.5")
    assert json.loads(text_of(again)["report.json"])["total"]["decode_rows"] == 2 * 30


def test_it_says_what_it_wrote_and_that_it_should_be_read_first(trace: Path) -> None:
    result = invoke("bundle", str(trace))
    path = Path(result.stdout.strip())
    assert re.fullmatch(r"specdeck-bundle-\d{8}-\d{6}\.zip", path.name)
    assert path.parent == Path.cwd()
    assert result.stdout == f"{path}\n"
    for name in (README, TRACE, "report.json", "versions.json"):
        assert re.search(rf"^{re.escape(name)} +[\d,.]+ kB$", result.stderr, re.MULTILINE)
    assert "read it before you send it" in result.stderr
    assert [left.name for left in Path.cwd().iterdir()] == [path.name]


def test_tags_can_be_kept(trace: Path) -> None:
    texts = text_of(made(str(trace), "--keep-tags"))
    assert [bucket["workload"] for bucket in json.loads(texts["report.json"])["buckets"]] == ["acme-chat", "acme-code"]
    assert "--keep-tags" in texts[README]
    assert [word for _, word in leaks(texts) if word != "acme"] == []


def test_of_a_store_file_it_is_the_same(place: Path, trace: Path) -> None:
    store = place / "acme.duckdb"
    recorded(store)
    ours, traces = (json.loads(text_of(made(str(path), name))["report.json"]) for path, name in (
        (store, "a.zip"), (trace, "b.zip")
    ))  # fmt: skip
    assert ours["buckets"] == traces["buckets"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.jsonl",), "no such file"),
        (("broken.jsonl",), "broken.jsonl:1"),
        (("broken.jsonl", "there.zip"), "there already"),
        (("broken.jsonl", "no/folder/x.zip"), "no folder"),
        (("--hours", "0"), "--hours"),
        (("--hours", "nan"), "--hours"),
        (("--hours", "inf"), "--hours"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_writes_nothing(arguments: tuple[str, ...], words: str) -> None:
    Path("broken.jsonl").write_text("{}\n")
    Path("there.zip").write_text("mine")
    result = invoke("bundle", *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert {path.name for path in Path.cwd().iterdir()} == {"broken.jsonl", "there.zip"}
    assert Path("there.zip").read_text() == "mine"


# Of a station


def recorded(path: Path) -> None:
    with Store.open(path) as store:
        ingest = Ingest(store)
        for record in sorted(records(), key=lambda record: record.ts):
            ingest.record(record)
        ingest.close()


def test_with_nothing_at_all_there_is_still_a_bundle_and_it_says_what_is_missing() -> None:
    result = invoke("bundle", "--no-doctor")
    assert result.exit_code == 0, result.output
    texts = text_of(Path(result.stdout.strip()))
    assert set(texts) == {README, "versions.json"}
    for name in set(PARTS) - {"versions.json"}:
        assert re.search(rf"^  {re.escape(name)} +\S", texts[README].partition("What is missing")[2], re.MULTILINE)
        assert re.search(rf"^{re.escape(name)} +missing: ", result.stderr, re.MULTILINE)
    assert leaks(texts) == []


def test_a_single_zip_that_is_not_there_is_where_to_write() -> None:
    assert made("mine.zip", "--no-doctor") == Path("mine.zip").absolute()


def test_of_a_station_that_died_there_are_its_store_its_options_and_its_logs(place: Path) -> None:
    recorded(place / "store.duckdb")
    options = StationOptions(
        store=str(place / "store.duckdb"), model="/data/acme/llama", host="192.0.2.7", api_key="hunter2",
        engine_args=["--hf-token", "hunter22"],
    )  # fmt: skip
    write_options(options, place / "run" / OPTIONS_FILE)
    (place / "data" / "logs").mkdir()
    (place / "data" / "logs" / "station.log").write_text("acme-chat: jdoe on 192.0.2.7 used hunter2\n")
    (place / "data" / "logs" / "engine-e0.log").write_text("model='/data/acme/llama', chatcmpl-9 for acme-code\n")
    texts = text_of(made("--no-doctor"))
    assert set(texts) == {README, *PARTS} - {"status.json", "doctor.json"}
    assert leaks(texts) == []
    assert texts["station.log"] == "tag-1: <user> on <address> used <secret>\n"
    assert texts["engine.log"] == "model='llama', <request> for tag-2\n"
    config = json.loads(texts["config.json"])["options"]
    assert (config["model"], config["api_key"], config["engine_args"]) == (
        "llama", "<secret>", ["--hf-token", "<secret>"],
    )  # fmt: skip
    assert json.loads(texts["report.json"])["total"]["decode_rows"] == 2 * 60


Answers = dict[str, Callable[[Any], Any]]


@pytest.fixture
def answers(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """A station that answers by these functions of the params."""
    log = place / "station.log"
    log.write_text("operator jdoe: mode\n")
    running = RunningStation(1, str(log), StationInfo("s1", str(place / "s.duckdb"), "http://127.0.0.1:1", False))
    recorded(place / "s.duckdb")
    with Store.open(place / "s.duckdb", read_only=True) as store:
        found: Answers = {
            "report": lambda params: report(store.connection, source="live", window=params.window),
            "export": lambda params: export(store.connection, params.path, params.kind, since=params.since).path,
            "snapshot": lambda _: scenes.live(),
            "processes": lambda _: ProcessesResult([], {"feed": "/home/jdoe/run/feed"}, str(place / "s.duckdb"), None),
        }

        def answer(method: str, kind: type, params: Any = None, *, seconds: float = 30.0) -> Any:
            return found[method](params)

        monkeypatch.setattr("console.cli.station.running_station", lambda: running)
        monkeypatch.setattr("console.cli.station.ask", answer)
        yield found


def test_of_a_running_station_everything_is_asked_for(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    exported = answers["export"]
    answers["export"] = lambda params: (asked.append(params), exported(params))[1]
    monkeypatch.setattr("engine.doctor.checks", lambda: [Check("disk", True, f"free in /home/jdoe, {KEY}")])
    texts = text_of(made("--hours", "0.5"))
    assert set(texts) == {README, *PARTS} - {"engine.log", "config.json"}
    assert "engine.log       specdeck did not start the engine" in texts[README]
    assert leaks(texts) == []
    assert [(params.kind, params.since) for params in asked] == [("jsonl", T0 + 120 * 60 - 1800)]
    assert json.loads(texts["report.json"])["total"]["decode_rows"] == 2 * 30
    assert json.loads(texts["doctor.json"]) == [
        {"name": "disk", "ok": True, "detail": "free in ~, <secret>", "remedy": ""}
    ]
    assert json.loads(texts["status.json"])["sockets"] == {"feed": "~/run/feed"}
    assert texts["station.log"] == "operator <user>: mode\n"


@pytest.mark.parametrize("method", ["report", "export", "snapshot", "processes"])
@pytest.mark.parametrize("error", [click.ClickException("it broke for jdoe"), RuntimeError("it broke for jdoe")])
def test_what_the_station_cannot_give_is_told_and_the_rest_is_there(
    answers: Answers, method: str, error: Exception
) -> None:
    def fail(_: Any) -> Any:
        raise error

    answers[method] = fail
    texts = text_of(made("--no-doctor"))
    missing = texts[README].partition("What is missing")[2].partition("What was taken out")[0]
    assert "it broke for <user>" in missing
    assert "station.log" in texts
    assert "versions.json" in texts
    assert (TRACE in texts) == (method != "export")
    if method == "report":
        assert "a reason may name one. (it broke for <user>)" in texts[README]
    else:
        assert leaks(texts) == []


def test_a_tag_of_long_ago_is_known_in_a_log_and_in_the_reason_of_what_is_still_in_force(
    answers: Answers, place: Path
) -> None:
    (place / "station.log").write_text("acme-old began\n")
    texts = text_of(made("--no-doctor", "--hours", "0.01"))
    assert leaks(texts) == []
    assert "is slow since tag-3" in texts[TRACE]
    assert texts["station.log"] == "tag-3 began\n"


def test_a_doctor_that_breaks_is_told(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[Check]:
        raise OSError("no children any more")

    monkeypatch.setattr("engine.doctor.checks", broken)
    assert "doctor.json      no children any more" in text_of(made())[README]


def test_a_real_station_gives_its_records_config_status_and_logs(place: Path) -> None:
    launcher = Launcher(
        StationOptions(
            store=str(place / "store.duckdb"), port=free_port(), engine_command=ENGINE_COMMAND, api_key=KEY, max_k=4
        )
    )
    launcher.spawn()
    try:
        launcher.wait()

        def rows() -> bool:
            total = ask("report", Report).total
            return total is not None and (total.decode_rows or 0) > 20

        until(rows, "rows of the engine")
        started = time.time()
        path = made("--no-doctor", "--hours", "0.001")
        texts = text_of(path)
    finally:
        station = running_station()
        if station is not None:
            stop_station(station, everything=True, seconds=20.0)
        end_all()
    assert set(texts) == {README, *PARTS} - {"doctor.json"}
    assert leaks(texts) == []
    assert json.loads(texts["config.json"])["options"]["api_key"] == "<secret>"
    assert {bucket["workload"] for bucket in json.loads(texts["report.json"])["buckets"]} == {"tag-1", "tag-2"}
    times = [record.ts for record in read_records(path) if type(record).__name__ == "StepRecord"]
    assert times
    assert min(times) > started - 3.6 - 5
