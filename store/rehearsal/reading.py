"""Reads the folder of a rehearsal: what was planned, and the passes that came to their end."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from store.database import Store, StoreError
from store.ingest import Ingest
from store.rehearsal.digest import PassDigest, digest
from store.rehearsal.plan import Plan
from store.rehearsal.records import Outcome, Pass, Rehearsal
from store.source import take_in

REHEARSAL: Final = "rehearsal.json"
PASSES: Final = "passes"
PASS: Final = "pass.json"
OUTCOMES: Final = "outcomes.jsonl"
TRACE: Final = "trace.jsonl.zst"

T = TypeVar("T")


class RehearsalError(ValueError):
    """A folder that is no rehearsal, or a broken file in it: names the file and the remedy."""


class PassRead(NamedTuple):
    """A pass with what its requests came to, and what its trace says."""

    made: Pass
    outcomes: tuple[Outcome, ...]
    digest: PassDigest


def read_rehearsal(folder: Path) -> Rehearsal:
    """Raises RehearsalError."""
    path = folder / REHEARSAL
    if not path.is_file():
        raise RehearsalError(f"{folder}: no rehearsal: there is no {REHEARSAL} in it")
    return _decoded(path, path.read_bytes(), Rehearsal, "a rehearsal.json is not to be edited; start another rehearsal")


def read_passes(folder: Path, rehearsal: Rehearsal, stage: str | None = None) -> list[PassRead]:
    """The passes that came to their end, in the order in which they were made; of one `stage` where it is named.

    Of two that were made of the same arm and repeat the later one counts.

    Raises:
        RehearsalError: a file of theirs is missing or broken. Removing the pass's folder and resuming makes it again.
    """
    found: dict[tuple[str, int], tuple[Pass, Path]] = {}
    for path in sorted((folder / PASSES).glob(f"*/{PASS}")):
        made = _decoded(path, path.read_bytes(), Pass, _AGAIN)
        if made.arm not in rehearsal.plan.arms:
            raise RehearsalError(f"{path}: arm {made.arm!r} is not in the plan; {_AGAIN}")
        before = found.get((made.arm, made.repeat))
        if (stage is None or made.stage == stage) and (before is None or before[0].number < made.number):
            found[made.arm, made.repeat] = made, path
    ordered = sorted(found.values(), key=lambda one: one[0].number)
    return [_read(path, path.stat().st_mtime_ns, made, rehearsal.plan, rehearsal.prefix) for made, path in ordered]


_AGAIN: Final = "remove the pass's folder and resume, which makes the pass again"


def _read(path: Path, stamp: int, made: Pass, plan: Plan, prefix: str) -> PassRead:
    return _kept(str(path), stamp, msgspec.json.encode((made, plan, prefix)))


@lru_cache(maxsize=256)
def _kept(path: str, stamp: int, said: bytes) -> PassRead:
    """What a pass came to does not change once its `pass.json` is there, and several figures are made of it. Small: the
    steps themselves are not kept. `stamp`: when that file was written."""
    made, plan, prefix = msgspec.json.decode(said, type=tuple[Pass, Plan, str])
    folder = Path(path).parent
    outcomes = _outcomes(folder / OUTCOMES, plan)
    return PassRead(made, outcomes, _digest(folder / TRACE, made, outcomes, plan, prefix))


def _outcomes(path: Path, plan: Plan) -> tuple[Outcome, ...]:
    if not path.is_file():
        raise RehearsalError(f"{path}: missing; {_AGAIN}")
    names = {mix.name for mix in plan.mix}
    found: dict[str, Outcome] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        one = _decoded(Path(f"{path}:{number}"), line, Outcome, _AGAIN)
        if not 0 <= one.phase < len(plan.phases) or one.workload not in names:
            raise RehearsalError(f"{path}:{number}: phase {one.phase} or workload {one.workload!r} is not in the plan")
        if one.id in found:
            raise RehearsalError(f"{path}:{number}: request {one.id!r} occurs twice; {_AGAIN}")
        found[one.id] = one
    return tuple(found.values())


def _digest(path: Path, made: Pass, outcomes: tuple[Outcome, ...], plan: Plan, prefix: str) -> PassDigest:
    if not path.is_file():
        raise RehearsalError(f"{path}: missing; {_AGAIN}")
    try:
        with Store.for_trace(path) as store:
            take_in(path, Ingest(store, tags=[prefix + mix.name for mix in plan.mix]))
            return digest(store.connection, made, outcomes, plan, prefix)
    except (StoreError, OSError) as error:
        raise RehearsalError(f"{error}; {_AGAIN}") from error


def _decoded(path: Path, text: bytes, kind: type[T], remedy: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RehearsalError(f"{path}: {error}; {remedy}") from error
