"""What a what-if assumed and left out, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from store.buckets import CALIBRATION
from store.counts import Bools
from store.whatif.lengths import acting, clamped
from store.whatif.reading import Record
from store.whatif.sums import Asked, Known

MODEL_DRAFTERS: Final = frozenset({"eagle", "eagle3", "draft_model", "medusa", "custom_class"})


def notes(asked: Asked, known: Known, record: Record, members: Bools) -> Iterator[str]:
    """A sentence each. `members`: the buckets that were looked at."""
    engines = {bucket.engine for _, bucket in record.buckets if members[bucket.place]}
    runs = [run for run in record.runs.values() if run.engine in engines]
    yield from clamped(asked.mode, runs)
    yield from _fresh_drafts(asked, {run.method for run in runs})
    never = float(known.never[members].sum()) / max(float(known.positions[members].sum()), 1.0)
    if never and asked.k.any():
        yield f"{_share(never)} of the tokens were made at K 0: nobody knows what drafts would have done there"
    if known.barred_rows:
        yield "requests that ask for no speculation, or came by the vanilla lane, stay at K 0"
    if asked.mode.schedule is not None and not acting(asked.mode):
        yield "a schedule is looked up at the number of sequences that ran when the token was recorded"
    if acting(asked.mode):
        yield (
            "adaptive's controller is simulated from the beginning of the stretch, knowing only the step times, with "
            "its default settings and a fixed seed"
        )
    if known.gone_until is not None:
        yield f"what was recorded up to {_written(known.gone_until)} is no longer kept step by step and takes no part"
    if any(bucket.workload == CALIBRATION for _, bucket in record.buckets):
        yield "specdeck's own calibration requests are left out; step times are taken from them too"


def _fresh_drafts(asked: Asked, methods: set[str]) -> Iterator[str]:
    if not asked.k.any():
        return
    models = sorted(methods & MODEL_DRAFTERS)
    if models:
        yield (
            f"assumed: a token that {' and '.join(models)} drafted right is drafted right afresh from any start; a "
            "model's draft may change with its start, so steps that start elsewhere than recorded are less certain"
        )
    others = sorted(methods - MODEL_DRAFTERS - {"none"})
    if others:
        yield (
            f"assumed: a token that {' and '.join(others)} drafted right is drafted right afresh from any start, "
            "though now and then another match may be found there"
        )


def _written(ts: float) -> str:
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1 %"
