"""Every figure of definitions.md, "Acceptance": one pure function each, on a joint histogram of rows.

Report, live windows and replay all come through `figures`. d, a, e, k: drafted, accepted, emitted, k_asked of a row; a
decode row doesn't end a prefill, a draft step is a decode row with d > 0. Absent is None: never 0, never NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.records import CAUSES, LIMITS
from engine.speedup import Speedup
from store.counts import RATIO_UNIT, TOKEN_BUDGET, Bools, Ints, Joint, SequenceTotals, step_ratio
from store.figures import BucketState, Figures, PostResume, SpeedupState, Window
from store.intervals import acceptance_interval

FEW_SEQUENCES: Final = 10
FEW_STEPS: Final = 30


def divided(numerator: float, denominator: float) -> float | None:
    """The quotient, or None where there is nothing to divide by."""
    return numerator / denominator if denominator else None


def acceptance_rate(joint: Joint) -> float | None:
    """α, the headline: mean over draft steps of a/d. No bonus token. Per step, then averaged (production practice)."""
    draft = joint.draft
    ratio = joint.tokens(step_ratio(joint.drafted, joint.accepted), draft)
    return divided(ratio, RATIO_UNIT * joint.rows(draft))


def pooled_acceptance(joint: Joint) -> float | None:
    """Σa / Σd over draft steps: vLLM's "draft acceptance rate". Falls when K rises with nothing else changed."""
    return divided(joint.tokens(joint.accepted, joint.draft), joint.tokens(joint.drafted, joint.draft))


def conditional_acceptance(joint: Joint) -> float | None:
    """α̂ = Σa / (Σa + R), R the draft steps with a < d: maximum likelihood of the truncated geometric, the α of
    Leviathan et al. (arXiv 2211.17192) that the speedup formula takes."""
    accepted = joint.tokens(joint.accepted, joint.draft)
    return divided(accepted, accepted + joint.rows(joint.draft & (joint.accepted < joint.drafted)))


def acceptance_at_depth(joint: Joint, depth: int) -> float | None:
    """Mean over draft steps with d ≥ m of min(a, m)/m: what K = m would have shown; compares periods of different K."""
    deep = joint.draft & (joint.drafted >= depth)
    return divided(joint.tokens(np.minimum(joint.accepted, depth), deep), depth * joint.rows(deep))


def mean_acceptance_length(joint: Joint) -> float | None:
    """AL = 1 + Σa / draft steps, the bonus token counted: vLLM, llama.cpp, EAGLE's τ."""
    extra = divided(joint.tokens(joint.accepted, joint.draft), joint.rows(joint.draft))
    return None if extra is None else 1 + extra


def committed_per_step(joint: Joint) -> float | None:
    """Σe / decode rows: what the engine commits, after stops and length limits cut runs short."""
    return divided(int(joint.emitted[joint.decode].sum()), joint.rows(joint.decode))


def waste_ratio(joint: Joint) -> float | None:
    """(Σd − Σa) / Σd: drafted tokens that verification threw away."""
    drafted = joint.tokens(joint.drafted, joint.draft)
    return divided(drafted - joint.tokens(joint.accepted, joint.draft), drafted)


def drafting_waste(joint: Joint) -> float | None:
    """Σ(proposed − d) / Σ proposed over decode rows where proposed is known: drafted, then trimmed."""
    proposed = int(joint.proposed[joint.decode].sum())
    return divided(proposed - int(joint.proposed_drafted[joint.decode].sum()), proposed)


def drafted_share(joint: Joint) -> float | None:
    """Draft steps / decode rows: how often speculation was on at all."""
    return divided(joint.rows(joint.draft), joint.rows(joint.decode))


def position_marginal(joint: Joint) -> list[float | None]:
    """For j = 1 …: draft steps with a ≥ j / all draft steps. As vLLM and llama.cpp count positions."""
    steps = joint.rows(joint.draft)
    return [divided(passed, steps) for passed in _reaching(joint, joint.accepted, joint.draft)]


def position_conditional(joint: Joint) -> list[float | None]:
    """h_j: draft steps with a ≥ j / draft steps with d ≥ j and a ≥ j−1: the drafter's quality at that position."""
    tested = np.minimum(joint.drafted, joint.accepted + 1)
    return _hazards(joint, tested, joint.draft)


def position_at_risk(joint: Joint) -> list[float | None]:
    """g_j: rows with a ≥ j / decode rows with k ≥ j and a ≥ j−1, for planning.

    A position that the drafter left empty counts as not accepted; one that the token budget took away is censored: a
    `token_budget` row counts at j ≤ d only.
    """
    asked = np.where(joint.cause == TOKEN_BUDGET, np.minimum(joint.k_asked, joint.drafted), joint.k_asked)
    return _hazards(joint, np.minimum(asked, joint.accepted + 1), joint.decode)


def expected_tokens(at_risk: Sequence[float | None]) -> float:
    """E[tokens | K] = 1 + Σ_{j=1..K} Π_{i≤j} g_i for K = len(at_risk). Ends where nothing is known."""
    total = reach = 1.0
    for hazard in at_risk:
        if hazard is None:
            break
        reach *= hazard
        total += reach
    return total


def histogram(joint: Joint, column: Ints) -> dict[str, int]:
    """Decode rows by a count, ascending, keys as text."""
    decode = joint.decode
    if not decode.any():
        return {}
    rows = np.bincount(column[decode], weights=joint.count[decode])
    return {str(value): int(rows[value]) for value in np.flatnonzero(rows)}


def named_histogram(joint: Joint, column: Ints, names: Sequence[str]) -> dict[str, int]:
    """Decode rows by a code, under its name, in the order of `names`."""
    return {names[int(code)]: rows for code, rows in histogram(joint, column).items()}


def is_few(draft_steps: int, drafting_sequences: int) -> bool:
    """Below 10 sequences (that drafted) or 30 draft steps an acceptance carries "few"."""
    return drafting_sequences < FEW_SEQUENCES or draft_steps < FEW_STEPS


def bucket_state(draft_steps: int, few: bool, speedup: SpeedupState) -> BucketState:
    """`blind` where nothing was drafted, so that acceptance can't be seen; `few`; `calibrating` where the speedup is;
    else `ok`."""
    if not draft_steps:
        return "blind"
    if few:
        return "few"
    return "calibrating" if speedup == "calibrating" else "ok"


def speedup_state(decode_rows: int) -> SpeedupState:
    """Where nothing is known of step times: `absent` without decode rows, else `calibrating`."""
    return "calibrating" if decode_rows else "absent"


def post_resume(joint: Joint) -> PostResume:
    """The draft steps that came soon after a long stretch of K = 0, by themselves."""
    resumed = joint.take(joint.post_resume > 0)
    return PostResume(
        steps=resumed.rows(resumed.draft),
        drafted=resumed.tokens(resumed.drafted, resumed.draft),
        accepted=resumed.tokens(resumed.accepted, resumed.draft),
        alpha=acceptance_rate(resumed),
    )


def figures(
    joint: Joint,
    sequences: SequenceTotals,
    *,
    speedup: Speedup | None = None,
    seconds: float | None,
    window: Window | None,
    workload: str | None = None,
    context: str | None = None,
    temperature: str | None = None,
    model_version: str | None = None,
    engine: str | None = None,
) -> Figures:
    """All figures of one bucket, or of a pool whose pooled keys are None.

    Args:
        speedup: realised speedup of these rows; None where nothing is known of step times.
        seconds: recorded wall seconds inside `window`, outages and gaps taken out.
    """
    draft_steps, decode_rows = joint.rows(joint.draft), joint.rows(joint.decode)
    emitted = int(joint.emitted.sum())
    interval = acceptance_interval(sequences)
    few = is_few(draft_steps, sequences.drafting)
    known = speedup.state if speedup else speedup_state(decode_rows)
    return Figures(
        workload=workload,
        context=context,
        temperature=temperature,
        model_version=model_version,
        engine=engine,
        sequences=sequences.sequences or None,  # rows without any are older than what is kept of sequences
        steps=draft_steps,
        decode_rows=decode_rows,
        drafted=joint.tokens(joint.drafted, joint.decode),
        accepted=joint.tokens(joint.accepted, joint.decode),
        emitted=emitted,
        alpha=acceptance_rate(joint),
        alpha_low=interval.low if interval else None,
        alpha_high=interval.high if interval else None,
        pooled_acceptance=pooled_acceptance(joint),
        conditional_acceptance=conditional_acceptance(joint),
        mean_acceptance_length=mean_acceptance_length(joint),
        committed_per_step=committed_per_step(joint),
        waste_ratio=waste_ratio(joint),
        drafted_share=drafted_share(joint),
        position_marginal=position_marginal(joint),
        position_conditional=position_conditional(joint),
        position_at_risk=position_at_risk(joint),
        k_histogram=histogram(joint, joint.k_asked),
        drafted_histogram=histogram(joint, joint.drafted),
        cause_histogram=named_histogram(joint, joint.cause, CAUSES),
        limit_histogram=named_histogram(joint, joint.limit, LIMITS),
        speedup=speedup.value if speedup else None,
        speedup_low=speedup.low if speedup else None,
        speedup_high=speedup.high if speedup else None,
        speedup_state=known,
        tokens_per_second=divided(emitted, seconds) if seconds is not None else None,
        window=window,
        few=few,
        state=bucket_state(draft_steps, few, known),
        post_resume=post_resume(joint),
    )


def _hazards(joint: Joint, last_at_risk: Ints, where: Bools) -> list[float | None]:
    """Of the rows that were at risk at position j (j ≤ `last_at_risk`), the share that passed it (a ≥ j)."""
    at_risk = _reaching(joint, last_at_risk, where)
    passed = _reaching(joint, np.minimum(last_at_risk, joint.accepted), where)
    return [divided(p, n) for p, n in zip(passed, at_risk, strict=True)]


def _reaching(joint: Joint, last: Ints, where: Bools) -> list[int]:
    """Rows `where` whose `last` position is j or later, for j = 1 … the largest K asked for or drafted.

    All position lists have that one length.
    """
    decode = joint.decode
    if not decode.any():
        return []
    length = int(max(joint.k_asked[decode].max(), joint.drafted[decode].max()))
    ending_at = np.bincount(np.minimum(last[where], length), weights=joint.count[where], minlength=length + 1)
    return [int(rows) for rows in ending_at[::-1].cumsum()[::-1][1:]]
