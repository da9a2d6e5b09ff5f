"""What speculation cost and saved one workload, in one line. Pure."""

from __future__ import annotations

from typing import Final

from console.app.balance.amounts import half_width, share, sign_of, spent
from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Part, clean, clip, cut, fit
from store.balance.records import Balance, WorkloadBalance

NAME: Final = 24
"""Cells of a workload's name at most."""
NAMED_PAYERS: Final = 2
WORTH_NAMING: Final = 0.05
"""Of what the drafts cost: who paid less than this share is not named."""


def balance_line(balance: Balance | None, workload: str | None, width: int) -> Line:
    """Empty while nothing was answered, and where the window knows nothing of the workload."""
    if balance is None or balance.window is None:
        return EMPTY
    place = next((n for n, one in enumerate(balance.workloads) if one.workload == workload), None)
    if place is None:
        return EMPTY
    one = balance.workloads[place]
    glyph, role = sign_of(one)
    head: Line = ((f" {glyph} ", role), (f"{clip(clean(workload or ''), NAME)} ", "bright"))
    window = numbers.duration(balance.window.end - balance.window.start)
    if one.saved is None:
        why = f"calibrating what speculation cost and saved: vanilla is measured for {share(one.measured)} of its time"
        return cut((*head, (why, "dim")), width)
    parts = [
        Part((*head, *_saved(one, window)), 6, (*head, *_saved(one, window, brief=True)), 0),
        Part(_drafts(balance, place), 3, _drafts(balance, place, brief=True), 2),
        Part(_for_others(one), 5),
    ]
    return fit(parts, width, (" · ", "faint"))


def _saved(one: WorkloadBalance, window: str, *, brief: bool = False) -> Line:
    assert one.saved is not None
    assert one.used is not None
    assert one.vanilla is not None
    word, half = "saved" if one.saved >= 0 else "lost", half_width(one)
    error = "" if half is None else f" ±{spent(half)}"
    spans: Line = (
        (f"{word} ", "text"),
        (spent(one.saved), "bright"),
        (error, "dim"),
        (f" of engine time in {window}", "text"),
    )
    if brief:
        return spans
    return (*spans, (f": {spent(one.used)} for {spent(one.vanilla)} of vanilla", "dim"))


def _drafts(balance: Balance, place: int, *, brief: bool = False) -> Line:
    """What its drafts cost, and who else paid for that."""
    one = balance.workloads[place]
    if not one.draft_tokens:
        return (("it drafted nothing", "text"),)
    assert one.drafts_cost is not None
    text = f"its drafts cost {spent(one.drafts_cost)}" if one.drafts_cost >= 0 else "its drafts cost nothing"
    payers = _payers(balance, place)
    if brief or not payers:
        return ((text, "text"),)
    named = ", ".join(
        f"{name}{' paid' if not number else ''} {spent(paid)}" for number, (name, paid) in enumerate(payers)
    )
    return ((text, "text"), (f", of which {named}", "text"))


def _payers(balance: Balance, place: int) -> list[tuple[str, float]]:
    """Other workloads that paid for the drafts of one, the most first."""
    assert balance.paid is not None
    cost = balance.workloads[place].drafts_cost or 0.0
    others = [
        (clean(one.workload or ""), balance.paid[payer][place])
        for payer, one in enumerate(balance.workloads)
        if payer != place and balance.paid[payer][place] > WORTH_NAMING * cost > 0
    ]
    return sorted(others, key=lambda payer: -payer[1])[:NAMED_PAYERS]


def _for_others(one: WorkloadBalance) -> Line:
    if one.paid_others is None or one.paid_others < 0.05:
        return EMPTY
    return ((f"it paid {spent(one.paid_others)} for others'", "dim"),)
