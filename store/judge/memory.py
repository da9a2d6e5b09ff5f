"""Everything that a judge knows, as one record that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from store.buckets import BucketName
from store.judge.acceptance import AcceptanceMemory, empty_acceptance
from store.judge.arrays import unpacked
from store.judge.book import BookMemory
from store.judge.happenings import HappeningsMemory
from store.judge.history import HistoryMemory
from store.judge.loads import LoadsMemory
from store.judge.mix import MixMemory
from store.judge.speed import SpeedMemory, empty_speed

VERSION: Final = 1


class JudgeMemory(msgspec.Struct):
    version: int
    names: dict[int, BucketName]
    """The judge's own numbers of buckets."""
    ticked: float | None
    """The last moment at which windows ended."""
    acceptance: AcceptanceMemory
    speed: SpeedMemory
    loads: LoadsMemory
    mix: MixMemory
    history: HistoryMemory
    happenings: HappeningsMemory
    book: BookMemory


def empty_memory() -> JudgeMemory:
    return JudgeMemory(
        VERSION, {}, None, empty_acceptance(), empty_speed(), LoadsMemory(), MixMemory(), HistoryMemory(),
        HappeningsMemory(), BookMemory(),
    )  # fmt: skip


def read_memory(state: dict[str, Any], *, renumbered: bool, numbers: Mapping[int, int] | None = None) -> JudgeMemory:
    """The memory that was kept as plain values.

    Args:
        renumbered: sequences have other numbers now …
        numbers: … and these go on: old → new.

    Raises:
        msgspec.ValidationError: not such a state; names the field. It is a ValueError.
        ValueError: the state of another version of the judge.
    """
    if state.get("version") != VERSION:
        raise ValueError(f"the judge's state has version {state.get('version')!r}, this one reads {VERSION}")
    memory = unpacked(state, JudgeMemory)
    if renumbered:
        memory.acceptance.renumber(numbers)
    return memory
