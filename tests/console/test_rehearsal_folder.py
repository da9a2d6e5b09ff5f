"""A rehearsal's folder: what is whole counts, what is not is made again from the same requests; one at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.rehearsing.passes.folder import FolderError, RehearsalFolder, all_of, find, new_id
from console.rehearsing.passes.lock import AnotherGoesOn, alone, going_on
from console.rehearsing.passes.order import passes
from console.rehearsing.recovery import Accepted, not_recovered
from store.operating_map.fingerprint import Fingerprint
from store.rehearsal.plan import Mix, Phase, Plan
from store.rehearsal.records import DrawnRequest, Message, Pass, Rehearsal

PLAN = Plan(
    name="p", arms=("k0", "k2"), mix=(Mix(name="chat", share=1.0, prompts="chat", max_tokens=(8,)),),
    phases=(Phase(name="busy", seconds=10.0, rate=1.0),), repeats=2,
)  # fmt: skip
FINGERPRINT = Fingerprint(
    model_version="t | d | ngram | vllm 0.32.0", vllm="0.32.0", hardware="cpu", topology="1/1/1", max_k=4,
    max_num_seqs=8,
)  # fmt: skip
FIRST, SECOND, THIRD, _ = passes(PLAN)


def drawn(id: str) -> list[DrawnRequest]:
    said = (Message("user", "hello"),)
    return [
        DrawnRequest(id=id, at=0.1, phase=0, workload="chat", messages=said, max_tokens=8, temperature=0.0, seed=1)
    ]  # fmt: skip


def made(due: object) -> Pass:
    number, arm, repeat, stage = due  # type: ignore[misc]
    return Pass(
        number=number, arm=arm, repeat=repeat, stage=stage, policy=None, engine="e0", start=1.0, end=2.0
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> RehearsalFolder:
    folder = RehearsalFolder(tmp_path / "rehearsals" / "one")
    rehearsal = Rehearsal(id="one", plan=PLAN, host="own", started=1.0, scale=1.0, fingerprint=FINGERPRINT)
    folder.keep(rehearsal)
    assert folder.rehearsal() == rehearsal
    return folder


def test_only_a_pass_with_its_last_file_is_done(folder: RehearsalFolder) -> None:
    place = folder.begin(FIRST, lambda: drawn("a"))
    (place / "outcomes.jsonl").write_text("half a li")
    assert folder.done() == {}
    assert folder.begin(FIRST, lambda: drawn("a")) == place
    assert sorted(path.name for path in place.iterdir()) == ["requests.jsonl"]
    folder.finish(FIRST, made(FIRST))
    assert folder.done() == {1: made(FIRST)}


def test_other_arms_of_a_repeat_meet_the_very_same_requests(folder: RehearsalFolder) -> None:
    first = folder.begin(FIRST, lambda: drawn("a"))
    folder.finish(FIRST, made(FIRST))
    second = folder.begin(SECOND, lambda: drawn("changed meanwhile"))
    assert (second / "requests.jsonl").read_bytes() == (first / "requests.jsonl").read_bytes()
    third = folder.begin(THIRD, lambda: drawn("of another repeat"))
    assert b"of another repeat" in (third / "requests.jsonl").read_bytes()


def test_a_pass_under_anothers_number_is_told(folder: RehearsalFolder) -> None:
    folder.begin(FIRST, lambda: drawn("a"))
    folder.finish(FIRST, made(SECOND))
    with pytest.raises(FolderError, match="pass 2 of arm k2"):
        folder.done()


def test_rehearsals_are_found_by_id_or_as_the_latest(folder: RehearsalFolder) -> None:
    base = folder.path.parent
    later = RehearsalFolder(base / "two")
    later.keep(folder.rehearsal())
    RehearsalFolder(base / "three").path.mkdir()  # its engine never came up
    assert [one.id for one in all_of(base)] == ["one", "two"]
    assert find(base, "latest").id == "two"
    assert find(base, "one").id == "one"
    with pytest.raises(FolderError, match="the newest is two"):
        find(base, "three")
    with pytest.raises(FolderError, match="there is no rehearsal"):
        find(base / "nowhere", "latest")


def test_an_id_is_a_moment_and_a_name_that_a_file_may_have() -> None:
    assert new_id("my plan/7", 1790000000.0) == "2026-09-21T14-13-20Z-my-plan-7"


def test_a_second_rehearsal_is_refused_until_the_first_one_is_dead(tmp_path: Path) -> None:
    script = (
        f"from pathlib import Path; from console.rehearsing.passes.lock import alone\n"
        f"with alone(Path({str(tmp_path)!r}), 'the-first'): print('held', flush=True); input()"
    )
    root = str(Path(__file__).parents[2])
    first = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    assert going_on(tmp_path) == "the-first"
    with pytest.raises(AnotherGoesOn, match="the-first"), alone(tmp_path, "the-second"):
        pass
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert going_on(tmp_path) is None
    with alone(tmp_path, "the-second"):
        assert going_on(tmp_path) == "the-second"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([0.5, 0.7, 0.6, 0.4], [0.5, 0.7, 0.6, 0.4], None),
        ([0.5, 0.7, 0.6, 0.4], [0.48, 0.71, 0.6, 0.39], None),
        ([0.5, 0.7, 0.6, 0.4], [0.2, 0.4, 0.3, 0.1], "a fall of at least 0.30"),
        ([0.5, 0.7, None, 0.4], [0.2, None, 0.3, 0.1], "the same 2 prompts"),
        ([0.5, 0.9, 0.1, 0.4], [0.9, 0.1, 0.5, 0.2], None),
        ([None], [None], None),
        ([0.5, 0.7], [None, None], "drafted nothing"),
    ],
)
def test_acceptance_that_did_not_come_back_is_told(
    before: list[float | None], after: list[float | None], told: str | None
) -> None:
    def accepted(rates: list[float | None]) -> Accepted:
        known = [rate for rate in rates if rate is not None]
        return Accepted(rates, sum(known) / len(known) if known else None, 10 * len(known))

    said = not_recovered(accepted(before), accepted(after))
    assert said is None if told is None else said is not None and told in said
