"""One chunk of sequences, made ready for all policies: its positions in the order in which they are walked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from store.counts import Bools, Ints
from store.whatif.hazards import Hazards
from store.whatif.layout import Layout, layout
from store.whatif.positions import Kind, offered, positions
from store.whatif.reading import Rows, Steps
from store.whatif.walk import FILLED, RIGHT, WALKS, WRONG, Chances


@dataclass
class Chunk:
    """Whole sequences. `row` … `context`: of each position, in the order of `laid`."""

    rows: Rows
    steps: Steps
    hazards: Hazards
    before: int = 0
    """Positions in the chunks before it."""
    laid: Layout = field(init=False)
    row: Ints = field(init=False)
    """Place of the row that emitted it."""
    at_start: Bools = field(init=False)
    """A recorded step started here."""
    bucket: Ints = field(init=False)
    context: Ints = field(init=False)
    """Tokens before it."""
    never: Bools = field(init=False)
    chances: Chances = field(init=False)
    offered: Ints = field(init=False)
    """Of each row, see `positions.offered`."""

    def __post_init__(self) -> None:
        text = positions(self.rows)
        self.laid = layout(text)
        order = self.laid.order
        self.row, place = text.row[order], text.place[order]
        self.at_start = place == 0
        self.bucket = self.rows.bucket[self.row]
        self.context = self.rows.context[self.row] + place
        self.offered = offered(self.rows)
        kind = text.kind[order]
        self.never = np.asarray(kind == Kind.NEVER)
        chance = np.empty((WALKS, len(order)))
        chance[FILLED] = self.hazards.chance(text)[order]
        chance[WRONG] = kind == Kind.RIGHT
        chance[RIGHT] = kind != Kind.WRONG
        self.chances = Chances(
            chance, np.asarray(kind > Kind.WRONG), self.never, self.hazards.table, self.bucket.astype(np.int32)
        )
