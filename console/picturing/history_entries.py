"""Records of what was done, as the entries of the history that consoles list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from console.feed.protocol import HistoryEntry
from console.picturing.history_text import scores_of, sentence
from engine.records import ControlRecord
from store.control_history import SCORE
from store.operating_map.keeping import MAP


def entries(
    records: Sequence[ControlRecord], workload: str | None, undoable: Callable[[int | None], bool], now: float
) -> list[HistoryEntry]:
    """One for each action, those of `workload` alone where it is named; a score stands with its decision.

    Args:
        records: newest first, as the store gives them.
        undoable: whether the change to a policy version could be taken back.
        now: Unix seconds; the times of other days are written with their date.
    """
    scores = scores_of(records)
    return [
        HistoryEntry(
            ts=record.ts, actor=record.actor, action=record.action, workload=record.workload, before=record.before,
            after=record.after, policy=record.policy, why=record.why,
            numbers=None if record.action == MAP else record.numbers,  # a whole map: `map_get` has it
            text=sentence(record, scores.get(index), now), undoable=undoable(record.policy),
        )
        for index, record in enumerate(records)
        if record.action != SCORE and workload in (None, record.workload)
    ]  # fmt: skip
