"""Proposes the draft schedule once the survey is over: the comparison then tries it on other repeats."""

from __future__ import annotations

from pathlib import Path

from store.operating_map.loads import loads
from store.operating_map.making import proposed, strata_of, token_shares
from store.operating_map.pooled import Pooled
from store.rehearsal.arms import drafts
from store.rehearsal.plan import fixed_k
from store.rehearsal.reading import read_passes, read_rehearsal


def propose(folder: Path) -> list[tuple[int, int, int]] | None:
    """From the passes of the survey alone; None where too little was measured.

    Raises:
        RehearsalError: no rehearsal, or a broken file.
    """
    rehearsal = read_rehearsal(folder)
    passes = read_passes(folder, rehearsal, "survey")
    columns = loads(rehearsal.fingerprint.max_num_seqs)
    arms = sorted({one.made.arm for one in passes}, key=drafts)
    if not any(fixed_k(arm) is not None for arm in arms):
        return None
    return proposed(Pooled(strata_of(passes), columns), arms, columns, token_shares(rehearsal.plan, passes))
