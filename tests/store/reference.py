"""A slow reference of the figures: plain Python over a list of rows, written from the table of definitions alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

from scipy.stats import beta
from scipy.stats import t as student

from engine.records import Row


def possible(row: Row) -> bool:
    numbers = [row.k_asked, row.drafted, row.invalid, row.accepted, row.emitted, row.context, row.proposed or 0]
    return min(numbers) >= 0 and row.accepted <= row.drafted and row.emitted <= row.accepted + 1


def reference(rows: Sequence[Row]) -> dict[str, Any]:
    """Figures of rows that all belong to one bucket."""
    rows = [row for row in rows if possible(row)]
    decode = [row for row in rows if row.cause != "prefill"]
    draft = [row for row in decode if row.drafted > 0]
    d, a = sum(row.drafted for row in draft), sum(row.accepted for row in draft)
    rejected = sum(row.accepted < row.drafted for row in draft)
    low, high = interval(draft)
    longest = max((max(row.k_asked, row.drafted) for row in decode), default=0)
    positions = range(1, longest + 1)
    return {
        "sequences": len({row.seq for row in rows}),
        "steps": len(draft),
        "decode_rows": len(decode),
        "drafted": sum(row.drafted for row in decode),
        "accepted": sum(row.accepted for row in decode),
        "emitted": sum(row.emitted for row in rows),
        "alpha": share(sum(Fraction(row.accepted, row.drafted) for row in draft), len(draft)),
        "alpha_low": low,
        "alpha_high": high,
        "pooled_acceptance": share(a, d),
        "conditional_acceptance": share(a, a + rejected),
        "mean_acceptance_length": 1 + a / len(draft) if draft else None,
        "committed_per_step": share(sum(row.emitted for row in decode), len(decode)),
        "waste_ratio": share(d - a, d),
        "drafted_share": share(len(draft), len(decode)),
        "position_marginal": [share(sum(row.accepted >= j for row in draft), len(draft)) for j in positions],
        "position_conditional": [
            hazard([row for row in draft if row.drafted >= j and row.accepted >= j - 1], j) for j in positions
        ],
        "position_at_risk": [hazard([row for row in decode if at_risk(row, j)], j) for j in positions],
        "k_histogram": histogram(row.k_asked for row in decode),
        "drafted_histogram": histogram(row.drafted for row in decode),
        "cause_histogram": dict(Counter(row.cause for row in decode)),
        "limit_histogram": dict(Counter(row.limit for row in decode)),
        "few": len({row.seq for row in draft}) < 10 or len(draft) < 30,
    }


def at_risk(row: Row, j: int) -> bool:
    if row.k_asked < j or row.accepted < j - 1:
        return False
    return row.cause != "token_budget" or j <= row.drafted


def hazard(rows: Sequence[Row], j: int) -> float | None:
    return share(sum(row.accepted >= j for row in rows), len(rows))


def share(part: Fraction | int, whole: int) -> float | None:
    return float(Fraction(part) / whole) if whole else None


def histogram(values: Any) -> dict[str, int]:
    return {str(value): count for value, count in Counter(values).items()}


def interval(draft: Sequence[Row]) -> tuple[float | None, float | None]:
    x: dict[str, Fraction] = defaultdict(Fraction)
    y: dict[str, int] = defaultdict(int)
    for row in draft:
        x[row.seq] += Fraction(row.accepted, row.drafted)
        y[row.seq] += 1
    if not y:
        return None, None
    n, total = len(y), sum(y.values())
    n_eff = total**2 / sum(steps**2 for steps in y.values())
    ratio = sum(x.values()) / total
    if ratio == 0:
        return 0.0, float(beta.ppf(0.975, 1, n_eff))
    if ratio == 1:
        return float(beta.ppf(0.025, n_eff, 1)), 1.0
    if n < 2 or n_eff <= 1:
        return None, None
    variance = n / (n - 1) * float(sum((x[s] - ratio * y[s]) ** 2 for s in y)) / total**2
    half = float(student.ppf(0.975, n_eff - 1)) * sqrt(variance)
    return max(0.0, float(ratio) - half), min(1.0, float(ratio) + half)
