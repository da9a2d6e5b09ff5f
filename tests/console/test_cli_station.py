"""The commands over a running `specdeck serve`, started as an operator does it: by the script, from any folder.

The engine is the scripted one, brought along (`--no-engine`): what is tested is the command line.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.station_harness import free_port, living, start_own_engine, until

SCRIPT = Path(sys.executable).with_name("specdeck")


class Operator:
    """A shell in a folder with decoys: packages named like ours that break whoever imports them."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "work"
        self.run_dir = directory / "run"
        self.store = directory / "store.duckdb"
        self.port = free_port()
        for name in ("engine", "store", "console"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "__init__.py").write_text(f"raise ImportError('the decoy {name} was imported')\n")
        self.env = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
            "SPECDECK_RUNTIME_DIR": str(self.run_dir),
            "SPECDECK_DATA_DIR": str(directory / "data"),
            "SPECDECK_CACHE_DIR": str(directory / "cache"),
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(SCRIPT), *arguments], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120
        )

    def serve(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(SCRIPT), "serve", "--no-engine", "--port", str(self.port), "--store", str(self.store)],
            cwd=self.folder, env=self.env, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        someone = Operator(Path(name))
        monkeypatch.setenv("SPECDECK_RUNTIME_DIR", str(someone.run_dir))
        yield someone
        someone.run("stop")


@pytest.fixture
def serving(operator: Operator) -> Iterator[subprocess.Popen[str]]:
    """`specdeck serve` with an engine whose rows arrive."""
    station = operator.serve()
    until(lambda: operator.run("status").returncode == 0, "a station that answers")
    engine = start_own_engine(operator.run_dir, "mine")

    def recorded() -> bool:
        return any(
            bucket["decode_rows"] > 20 for bucket in json.loads(operator.run("report", "--json").stdout)["buckets"]
        )

    until(recorded, "rows in the report")
    yield station
    engine.kill()
    engine.wait()
    if station.poll() is None:
        station.kill()
        station.wait()


@pytest.mark.usefixtures("serving")
def test_status_says_what_runs(operator: Operator) -> None:
    told = json.loads(operator.run("status", "--json").stdout)
    assert told["running"] is True
    assert {process["role"] for process in told["processes"]} == {"station", "gateway"}
    (engine,) = told["engines"]
    assert (engine["engine"], engine["owned"], engine["executed_k"]) == ("mine", False, 4)
    assert told["gateway"]["url"] == f"http://127.0.0.1:{operator.port}"
    text = operator.run("status").stdout
    assert "not started by specdeck" in text
    assert str(operator.store) in text


@pytest.mark.usefixtures("serving")
def test_the_report_of_the_station_an_export_and_a_trace_agree(operator: Operator) -> None:
    for name in ("copy.duckdb", "copy.jsonl.zst"):
        exported = operator.run("export", name)
        assert exported.returncode == 0, exported.stderr
        assert exported.stdout.strip() == str(operator.folder / name)
    operator.run("export", "copy.duckdb", "again.jsonl")
    stored = json.loads(operator.run("report", "copy.duckdb", "--json").stdout)
    traced = json.loads(operator.run("report", "again.jsonl", "--json").stdout)
    replayed = json.loads(operator.run("replay", "again.jsonl", "--headless", "--json").stdout)["report"]
    counts = [
        [
            (bucket["workload"], bucket["decode_rows"], bucket["drafted"], bucket["accepted"])
            for bucket in report["buckets"]
        ]
        for report in (stored, traced, replayed)
    ]
    assert counts[0] == counts[1] == counts[2]
    assert {workload for workload, *_ in counts[0]} == {"code", "chat"}
    rows = list(csv.DictReader(io.StringIO(operator.run("report", "copy.duckdb", "--csv", "--by", "workload").stdout)))
    assert sum(int(row["decode_rows"]) for row in rows) == sum(rows for _, rows, _, _ in counts[0])
    info = json.loads(operator.run("trace", "info", "copy.jsonl.zst", "--json").stdout)
    assert info
    assert operator.run("export", "copy.duckdb").returncode == 2, "what is there already is never overwritten"


@pytest.mark.usefixtures("serving")
def test_sql_answers_on_a_snapshot_and_reaches_no_other_file(operator: Operator) -> None:
    answered = operator.run(
        "sql", "select workload, count(*) > 0 as some from row_facts group by all order by 1", "--json"
    )
    assert json.loads(answered.stdout) == [{"workload": "chat", "some": True}, {"workload": "code", "some": True}]
    whole = operator.run("sql", "--full", "select count(*) > 0 as some from rows", "--json")
    assert json.loads(whole.stdout) == [{"some": True}]
    refused = operator.run("sql", "select * from read_text('/etc/hostname')")
    assert refused.returncode == 2
    assert refused.stdout == ""


@pytest.mark.usefixtures("serving")
def test_the_store_under_recording_is_refused_with_the_way_to_ask_for_it(operator: Operator) -> None:
    refused = operator.run("report", str(operator.store))
    assert refused.returncode == 3
    assert "leave SOURCE out" in refused.stderr


@pytest.mark.usefixtures("serving")
def test_a_second_serve_is_told_who_is_there(operator: Operator) -> None:
    operator.port = free_port()
    second = operator.serve()
    assert second.wait(60) == 3
    assert second.stderr is not None
    assert "already runs" in second.stderr.read()


def test_a_port_that_is_taken_is_said_before_anything_starts(operator: Operator) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", operator.port))
        other.listen()
        refused = operator.serve()
        assert refused.wait(60) == 2
        assert refused.stderr is not None
        said = refused.stderr.read()
    assert str(os.getpid()) in said
    assert "--port" in said


def test_stop_ends_a_station_and_what_a_killed_one_left(operator: Operator, serving: subprocess.Popen[str]) -> None:
    processes = json.loads(operator.run("status", "--json").stdout)["processes"]
    gateway = next(process["pid"] for process in processes if process["role"] == "gateway")
    serving.kill()
    serving.wait()
    status = operator.run("status")
    assert status.returncode == 3
    assert f"gateway (pid {gateway})" in status.stderr
    stopped = operator.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert "nothing is left running" in stopped.stderr
    assert living([gateway]) == []


def test_sigterm_ends_serve_in_order(operator: Operator, serving: subprocess.Popen[str]) -> None:
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(60) == 0
    assert operator.run("status").returncode == 3
    assert json.loads(operator.run("report", str(operator.store), "--json").stdout)["buckets"]


def hear_interrupts() -> None:
    """Tests that were started in a shell's background inherit that interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_is_exit_code_130(operator: Operator) -> None:
    waiting = subprocess.Popen(
        [str(SCRIPT), "demo", "--no-engine", "--port", str(operator.port)],
        cwd=operator.folder, env=operator.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )  # fmt: skip
    until(lambda: operator.run("status").returncode == 0, "the demo's station")
    pids = [process["pid"] for process in json.loads(operator.run("status", "--json").stdout)["processes"]]
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == 130
    assert living(pids) == [], "the demo leaves nothing running"
    assert operator.run("status").returncode == 3
