"""Configured, resolved and executed of an engine, and why they differ. Pure."""

from __future__ import annotations

from console.app.drawing import numbers
from console.app.explaining.limits import ORDER, limit_words, order_words
from console.app.explaining.record import Record
from console.app.explaining.section import Block, Fact, Section, Text
from console.app.policy.columns import reasons
from console.app.policy.words import mode_words, same_mode
from console.feed.messages import EngineView
from store.figure_sql import deciding


def columns_section(engine: EngineView, record: Record, title: str = "Configured, resolved, executed") -> Section:
    """`title`: what is in front of the engine's name."""
    if engine.configured is None:
        why = "this engine is only observed: what it was asked and what it executes is not told"
        return Section(f"{title}, {engine.engine}", numbers.ABSENT, [Fact("absent", why, "warn")], "dim")
    executed = numbers.ABSENT if engine.executed_k is None else f"K {engine.executed_k}"
    differs = engine.resolved is not None and not same_mode(engine.resolved, engine.configured)
    blocks: list[Block] = [
        Fact("configured", f"{mode_words(engine.configured)}: what the operator asked"),
        Fact("resolved", f"{mode_words(engine.resolved)}: what the engine will do", "warn" if differs else "text"),
        Fact("executed", f"{executed}: what the rows show, of the last step"),
        *_limit(engine),
        *(Fact("≠", reason, role) for reason, role in reasons(engine)),
        Text(ORDER),
        Fact("the order", order_words(), "dim"),
        Text("A difference that a term or a cause explains is no mismatch; one that lasts for more than 20 steps "
             "without any is, and alerts."),
        record.query(deciding.executed(engine.engine, record.now), _fixed(engine)),
    ]  # fmt: skip
    return Section(f"{title}, {engine.engine}", executed, blocks)


def _limit(engine: EngineView) -> list[Block]:
    if engine.executed_k is None:
        return [Fact("absent", "no step of it was seen yet", "warn")]
    if engine.executed_limit is None:
        return []
    return [Fact("set by", f"{engine.executed_limit}: {limit_words(engine.executed_limit)}")]


def _fixed(engine: EngineView) -> str:
    if engine.batch_k != "fixed" and engine.data_parallel_size in (None, 1):
        return ""
    return "The batch K can't move here: executed is the largest k_asked of a step's rows, decided one step earlier."
