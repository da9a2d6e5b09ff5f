"""Puts an answer together: figures of each bucket and of everything."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from store.buckets import bucket_order
from store.counts import Bools
from store.metrics import divided
from store.whatif.figures import Predicted, Recorded, WhatIf, WhatIfBucket
from store.whatif.hazards import Hazards
from store.whatif.notes import notes
from store.whatif.rates import Rate, engine_rates
from store.whatif.reading import Bucket, Record
from store.whatif.sums import Asked, Known
from store.whatif.walk import FILLED, RIGHT, WRONG


def answer(asked: Asked, known: Known, record: Record, hazards: Hazards) -> WhatIf:
    """What came of one policy."""
    rates = engine_rates(asked, known, record)
    doubts = sorted({f"{engine}: {rate}" for engine, rate in rates.items() if isinstance(rate, str)})
    figures = _Figures(asked, known, record, hazards, rates)
    looked_at = [bucket for _, bucket in record.buckets if known.rows[bucket.place]]
    everything = known.rows > 0
    return WhatIf(
        policy=asked.mode,
        recorded=figures.recorded(everything),
        predicted=figures.predicted(everything),
        buckets=[figures.bucket(bucket) for bucket in sorted(looked_at, key=_order)],
        decode_rows=int(known.rows.sum()),
        mean_k=figures.mean_k(everything),
        no_seconds="; ".join(doubts) or None,
        notes=list(notes(asked, known, record, everything)),
    )


def _order(bucket: Bucket) -> tuple[object, ...]:
    return (*bucket_order(bucket.workload, bucket.context, bucket.temperature, bucket.model_version), bucket.engine)


class _Figures:
    """Figures of the buckets that `members` (indexed by bucket) marks."""

    def __init__(
        self, asked: Asked, known: Known, record: Record, hazards: Hazards, rates: Mapping[str, Rate | str]
    ) -> None:
        self._asked, self._known, self._hazards = asked, known, hazards
        self._buckets = [bucket for _, bucket in record.buckets]
        self._rates = {engine: rate for engine, rate in rates.items() if isinstance(rate, Rate)}

    def bucket(self, bucket: Bucket) -> WhatIfBucket:
        members = np.arange(len(self._buckets)) == bucket.place
        return WhatIfBucket(
            engine=bucket.engine,
            workload=bucket.workload,
            context=bucket.context,
            temperature=bucket.temperature,
            model_version=bucket.model_version,
            decode_rows=int(self._known.rows[bucket.place]),
            mean_k=self.mean_k(members),
            recorded=self.recorded(members),
            predicted=self.predicted(members),
        )

    def recorded(self, members: Bools) -> Recorded:
        known = self._known
        return Recorded(
            tokens_per_step=divided(float(known.tokens[members].sum()), float(known.rows[members].sum())),
            tokens_per_second=self._per_second(members, known.wall),
        )

    def predicted(self, members: Bools) -> Predicted:
        asked, known = self._asked, self._known
        tokens, rows = float(known.tokens[members].sum()), float(known.rows[members].sum())
        filled, wrong, right = (float(asked.steps[which][members].sum()) for which in (FILLED, WRONG, RIGHT))
        inexact = float(asked.inexact[members].sum())
        guessed = not (members & (asked.inexact > 0) & ~self._hazards.known).any()
        rates = self._rates if guessed else {}
        return Predicted(
            tokens_per_step=divided(tokens, filled) if guessed else None,
            # Where a bucket ends in the middle of a text, the faster walk may by chance begin more steps in it.
            tokens_per_step_low=divided(tokens, max(wrong, filled if guessed else wrong)),
            tokens_per_step_high=divided(tokens, min(right, filled if guessed else right)),
            naive_tokens_per_step=divided(float(asked.naive[members].sum()), rows),
            exact_share=divided(filled - inexact, filled),
            recorded_start_share=divided(float(asked.recorded_starts[members].sum()), filled),
            tokens_per_second=self._per_second(members, {name: rate.expected for name, rate in rates.items()}),
            tokens_per_second_low=self._per_second(members, {name: rate.long for name, rate in rates.items()}),
            tokens_per_second_high=self._per_second(members, {name: rate.short for name, rate in rates.items()}),
        )

    def mean_k(self, members: Bools) -> float | None:
        return divided(float(self._asked.k[members].sum()), float(self._asked.steps[FILLED][members].sum()))

    def _per_second(self, members: Bools, seconds: Mapping[str, float]) -> float | None:
        """Tokens of each engine over its seconds, all engines together; None where one's are unknown."""
        total = 0.0
        engines = {bucket.engine for bucket in self._buckets if members[bucket.place]}
        for engine in engines:
            of_engine = np.array([bucket.engine == engine for bucket in self._buckets])
            taken = seconds.get(engine, 0.0)
            if taken <= 0:
                return None
            total += float(self._known.all_tokens[members & of_engine].sum()) / taken
        return total
