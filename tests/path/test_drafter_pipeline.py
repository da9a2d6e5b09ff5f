"""The pipeline of the learned drafter from end to end, on a budget of minutes: `specdeck drafter train --recipe tiny`.

The head that comes out has seen two thousand tokens and is worthless; that it comes out, loads in vLLM, is measured and
says so in its card is what is tested.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from engine.drafter.evaluation.result import Evaluation
from engine.models import identify

SPECDECK = str(Path(sys.executable).with_name("specdeck"))
STAGE_SECONDS = 400.0


def _specdeck(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SPECDECK, *arguments], capture_output=True, text=True, timeout=STAGE_SECONDS, check=False)


@pytest.mark.engine
@pytest.mark.long  # each stage by itself is tested without
def test_a_head_from_nothing_cut_off_once_on_the_way(tmp_path: Path) -> None:
    work = tmp_path / "my-head"
    settings = ("--recipe", "tiny", "--work", str(work))
    _cut_off_when(work / "features" / "held-out", settings)
    made = (work / "answers" / "held-out.jsonl", work / "features" / "held-out")
    first = [path.stat().st_mtime_ns for path in made]

    done = _specdeck("drafter", "train", *settings)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(work / "head")
    assert [path.stat().st_mtime_ns for path in made] == first, "a finished shard was made again"
    assert "left" in done.stderr
    assert not list(work.rglob(".*draft*")), "remains of an interrupted stage"

    head, early = identify(work / "head"), identify(work / "early-head")
    assert head.fingerprint != early.fingerprint
    evaluation = msgspec.json.decode((work / "evaluation.json").read_bytes(), type=Evaluation)
    assert evaluation.head == head.identity
    assert {one.kind for one in evaluation.acceptance} == {"chat", "code", "rewrite", "creative", "languages"}
    arms = {(one.batch, one.arm): one for one in evaluation.throughput}
    assert len(arms) == 12
    assert all(one.tokens_per_second > 0 for one in arms.values())
    assert arms[4, "K 0"].length.value is None, "nothing was drafted"
    assert arms[4, "K 4"].length.under > 0
    card = (work / "head" / "README.md").read_text()
    for word in ("SmolLM2-135M-Instruct@", "Apache-2.0", "held-out prompts", "position 0", "As served by vLLM"):
        assert word in card

    again = _specdeck("drafter", "train", *settings)
    assert again.returncode == 0
    assert again.stdout == done.stdout


def _cut_off_when(sign: Path, settings: tuple[str, ...]) -> None:
    """Start the pipeline, and kill it with all its processes as soon as `sign` exists."""
    process = subprocess.Popen(
        [SPECDECK, "drafter", "train", *settings],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + STAGE_SECONDS
    while not sign.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    assert sign.exists(), "the pipeline wrote no features"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_what_is_wrong_is_said_before_any_work(tmp_path: Path) -> None:
    work = ("--work", str(tmp_path / "w"))
    for arguments, words in (
        (("fit", "--recipe", "huge", *work), "full, tiny"),
        (("train", "--target", str(tmp_path), *work), "config.json"),
        (("train", "--target", "some/model-of-the-hub", *work), "some/model-of-the-hub"),
    ):
        done = _specdeck("drafter", *arguments)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert not done.stdout
    assert _specdeck("drafter", "prompts", "--recipe", "tiny", *work).returncode == 0
    done = _specdeck("drafter", "prompts", "--recipe", "full", *work)
    assert done.returncode == 2
    assert "holds a run with another recipe" in done.stderr
    done = _specdeck("drafter", "fit", "--recipe", "tiny", *work)
    assert done.returncode == 1
    assert "drafter features" in done.stderr
