"""Figures of engines of which only counters are known: what others recorded, pooled over everything but the engine.

No row is known, so whatever is an average over steps (α and its interval) or asks for K is absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import duckdb

from store.figures import Figures, Window
from store.metrics import FEW_STEPS, divided
from store.recorded import union

KEYS: Final = ("model_version", "engine")
"""Keys of a bucket that are known of an observed engine; the others are pooled."""


class Observed(NamedTuple):
    """Counts of one engine and model version."""

    engine: str
    model_version: str
    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_per_position: list[int]
    generation_tokens: int | None
    stretches: list[tuple[float, float]]


def observed(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> list[Observed]:
    """What was counted in stretches that ended in (start, end], by engine and model version."""
    found: dict[tuple[str, str], Observed] = {}
    for engine, version, since, ts, drafts, draft_tokens, accepted, positions, tokens in connection.execute(
        """SELECT engine, model_version, since, o.ts, drafts, draft_tokens, accepted_tokens, accepted_per_position,
             generation_tokens
           FROM observations o JOIN engines e ON engine_run = e.id WHERE o.ts > ? AND o.ts <= ? ORDER BY o.ts""",
        [start, end],
    ).fetchall():
        one = Observed(engine, version, drafts, draft_tokens, accepted, positions, tokens, [(since, ts)])
        before = found.get((engine, version))
        found[engine, version] = one if before is None else _together([before, one])
    return list(found.values())


def observed_buckets(seen: Sequence[Observed], keys: Sequence[str]) -> list[Figures]:
    """One for each combination of those `keys` that are known of observed engines."""
    groups: dict[tuple[str, ...], list[Observed]] = {}
    known = [key for key in keys if key in KEYS]
    for one in seen:
        groups.setdefault(tuple(getattr(one, key) for key in known), []).append(one)
    return [
        observed_figures(_together(members), **dict(zip(known, name, strict=True))) for name, members in groups.items()
    ]


def observed_total(seen: Sequence[Observed]) -> Figures | None:
    return observed_figures(_together(seen)) if seen else None


def observed_figures(seen: Observed, model_version: str | None = None, engine: str | None = None) -> Figures:
    """Formulas as in `store.metrics`, from sums in place of rows. A key that is None is pooled."""
    drafts, drafted, accepted = seen.drafts, seen.draft_tokens, seen.accepted_tokens
    stretches = union(seen.stretches)
    seconds = sum(end - start for start, end in stretches)
    extra = divided(accepted, drafts)
    nothing: dict[str, Any] = dict.fromkeys(_UNKNOWN)
    return Figures(
        **nothing,
        model_version=model_version,
        engine=engine,
        steps=drafts,
        drafted=drafted,
        accepted=accepted,
        emitted=seen.generation_tokens,
        pooled_acceptance=divided(accepted, drafted),
        mean_acceptance_length=None if extra is None else 1 + extra,
        waste_ratio=divided(drafted - accepted, drafted),
        position_marginal=[divided(passed, drafts) for passed in seen.accepted_per_position],
        position_conditional=_conditional(seen.accepted_per_position, drafts),
        position_at_risk=[],
        k_histogram={},
        drafted_histogram={},
        cause_histogram={},
        limit_histogram={},
        speedup_state="absent",
        tokens_per_second=None if seen.generation_tokens is None else divided(seen.generation_tokens, seconds),
        window=Window(stretches[0][0], stretches[-1][1]) if stretches else None,
        few=drafts < FEW_STEPS,
        state="blind" if not drafts else "few" if drafts < FEW_STEPS else "ok",
    )


_UNKNOWN: Final = (
    "sequences", "decode_rows", "alpha", "alpha_low", "alpha_high", "conditional_acceptance", "committed_per_step",
    "drafted_share",
)  # fmt: skip


def _conditional(passed: Sequence[int], drafts: int) -> list[float | None]:
    """Of the first position only: how many steps drafted further is not counted."""
    return [divided(count, drafts) if not place else None for place, count in enumerate(passed)]


def _together(seen: Sequence[Observed]) -> Observed:
    longest = max(len(one.accepted_per_position) for one in seen)
    positions = [
        sum(one.accepted_per_position[place] for one in seen if place < len(one.accepted_per_position))
        for place in range(longest)
    ]
    tokens = [one.generation_tokens for one in seen if one.generation_tokens is not None]
    return Observed(
        seen[0].engine,
        seen[0].model_version,
        sum(one.drafts for one in seen),
        sum(one.draft_tokens for one in seen),
        sum(one.accepted_tokens for one in seen),
        positions,
        sum(tokens) if tokens else None,
        [stretch for one in seen for stretch in one.stretches],
    )
