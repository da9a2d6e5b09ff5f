"""What speaks for an alert, in plain numbers: rates as fractions, falls and bounds in points."""

from __future__ import annotations

from store.figures import BucketKey
from store.judge.alerts import Evidence, Note
from store.judge.bucket import Against
from store.judge.compare import Compared, compared, deepest, knows, plain
from store.judge.moments import Estimate, estimate, fall_below
from store.judge.pairs import RESUMED
from store.judge.settings import JudgeSettings
from store.judge.suspect import Found, Look


def evidence_of(result: Compared, against: Against, look: Look) -> Evidence:
    fall = result.fall
    return {
        "depth": result.depth,
        "present": round(fall.present.value, 4),
        "reference": round(fall.reference.value, 4),
        "against": against,
        "fall_points": round(100 * fall.fall, 2),
        "bound_points": round(100 * fall.bound, 2),
        "n": fall.present.n,
        "n_effective": round(fall.present.n_eff, 1),
        "reference_n": fall.reference.n,
        "window_start": look.window.start,
        "window_end": look.window.end,
    }


def gradual(look: Look, found: Found, settings: JudgeSettings) -> bool:
    """Whether the last window before the fall was first seen had fallen by half of it already."""
    level = found.suspicion.levels[0]
    before = [one for one in look.bucket.tracks[look.scale].recent if one.end < found.suspicion.since]
    if not before:
        return False
    last = compared(plain(before[-1].sums), plain(level), settings)
    return last is not None and last.fall.fall >= found.compared.fall.fall / 2


def resumed_note(look: Look, engine: str, key: BucketKey, settings: JudgeSettings) -> Note | None:
    """Where post-resume draft steps accept clearly less than the bucket's others: what is kept apart, and why."""
    if not knows(look.present[RESUMED], RESUMED, settings):
        return None
    resumed, others = estimate(look.present[RESUMED]), _level(look, settings)
    if resumed is None or others is None:
        return None
    fall = fall_below(resumed, others, settings.confidence)
    if fall.fall <= settings.resumed_fall or fall.bound >= 0:
        return None
    text = (
        f"post-resume: sequences that come back after K = 0 accept {resumed.value:.0%} in their first draft steps, "
        f"others {others.value:.0%}; these steps are kept apart and are no drift"
    )
    evidence: Evidence = {
        "present": round(resumed.value, 4),
        "reference": round(others.value, 4),
        "fall_points": round(100 * fall.fall, 2),
        "bound_points": round(100 * fall.bound, 2),
        "n": resumed.n,
        "reference_n": others.n,
    }
    return Note(kind="post_resume", ts=look.window.end, text=text, engine=engine, bucket=key, evidence=evidence)


def _level(look: Look, settings: JudgeSettings) -> Estimate | None:
    """Acceptance of the bucket's judged steps: in this window, else as it was last known."""
    candidates = [look.present]
    before = look.bucket.level_before(look.window.end, settings)
    if before is not None:
        candidates.append(plain(before))
    for sums in candidates:
        depth = deepest(sums, settings)
        if depth is not None:
            return estimate(sums[depth])
    return None
