"""Token positions of recorded sequences, and what a record says of each: the drafter was right, wrong, or nobody knows.

A decode row whose `accepted` is a and `emitted` e stands for e positions of its sequence's text: the first min(a, e)
are right. Where e = a + 1 the last one is the target's own token, and

- the drafter was wrong there where a < drafted, or where a grammar struck its token;
- nobody knows where all that was asked for was accepted (the bonus token), or what the token budget left of it;
- nobody knows either where the drafter left it empty (`no_proposal`, `length_limit`): of the very step that started
  there it is known that it had no more to offer, of a draft made afresh in between it is not;
- nobody asked for a draft where K was 0, whatever the reason (mode off, fallback, a hint, a lane, a `k0` probe).

Where e ≤ a (a stop, or the end of the answer, inside an accepted run) all e positions are right. Rows that end a
prefill made their token without a decode step: they are no positions. Rows of probes are positions like any others.
Quarantined rows are none, and as after lost frames the text has a hole there: `context` jumps, and the walk begins
again behind it, as it does where a sequence was preempted and read in again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from engine.records import CAUSES
from store.counts import Bools, Ints
from store.whatif.reading import Rows

_GRAMMAR, _NO_PROPOSAL, _LENGTH_LIMIT = (CAUSES.index(cause) for cause in ("grammar", "no_proposal", "length_limit"))


class Kind(IntEnum):
    """What is known of a position."""

    RIGHT = 0
    WRONG = 1
    BONUS = 2
    """Unknown: all drafts before it in its step were accepted."""
    SHORT = 3
    """Unknown: the drafter proposed some, which were accepted, and no more."""
    EMPTY = 4
    """Unknown: the drafter proposed nothing here."""
    NEVER = 5
    """Unknown: nobody asked for a draft."""


@dataclass(frozen=True)
class Positions:
    """Positions of decode rows, in the order of their text. Arrays of one length, but `rows`."""

    rows: Rows
    row: Ints
    """Place of the row that emitted it."""
    place: Ints
    """0 for the first position of its row."""
    kind: npt.NDArray[np.int8]
    begins: Bools
    """Whether the text before it is unknown: a sequence's first, or one behind a hole."""

    def __len__(self) -> int:
        return len(self.row)


def positions(rows: Rows) -> Positions:
    """The positions of whole sequences."""
    emitted = np.where(rows.decode, rows.emitted, 0)
    row = np.repeat(np.arange(len(rows)), emitted)
    place = np.arange(len(row)) - np.repeat(np.cumsum(emitted) - emitted, emitted)
    kind = np.where(place < rows.accepted[row], Kind.RIGHT, _last_kind(rows)[row]).astype(np.int8)
    return Positions(rows, row, place, kind, (place == 0) & _begins(rows)[row])


def offered(rows: Rows) -> Ints:
    """The longest draft that is known to have been possible where each row starts: what the drafter proposed where it
    left some of what was asked for empty, else no bound (a number above any K)."""
    left_empty = (rows.drafted < rows.k_asked) & np.isin(rows.cause, (_NO_PROPOSAL, _LENGTH_LIMIT))
    return np.where(left_empty, rows.drafted, np.int64(2**31))


def _last_kind(rows: Rows) -> Ints:
    """Kind of the position after the accepted ones of each row."""
    struck = (rows.cause == _GRAMMAR) & (rows.drafted < rows.k_asked)
    short = np.isin(rows.cause, (_NO_PROPOSAL, _LENGTH_LIMIT))
    return np.select(
        [
            (rows.accepted < rows.drafted) | struck,
            rows.k_asked == 0,
            short & (rows.drafted == 0),
            short,
        ],
        [Kind.WRONG, Kind.NEVER, Kind.EMPTY, Kind.SHORT],
        Kind.BONUS,
    )


def _begins(rows: Rows) -> Bools:
    """Whether each row follows on nothing that is known of its sequence's text."""
    follows = np.zeros(len(rows), dtype=bool)
    reached = rows.context[:-1] + rows.emitted[:-1]
    follows[1:] = (rows.sequence[1:] == rows.sequence[:-1]) & (rows.context[1:] <= reached) & rows.decode[:-1]
    # A row that emitted nothing, and so has no position, would hide a beginning: the next one takes it over.
    begins = ~follows
    silent = rows.decode & (rows.emitted == 0)
    if silent.any():
        for at in np.flatnonzero(silent[:-1] & begins[:-1]):
            begins[at + 1] = True
    return np.asarray(begins)
