"""The recorded texts of a run's sequences, unknown positions drawn, for a simulation that goes through all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from store.counts import Bools, Ints
from store.whatif.hazards import Hazards
from store.whatif.positions import Kind, Positions, offered, positions
from store.whatif.reading import Floats, Rows, Steps


@dataclass(frozen=True)
class Texts:
    """Sequences in the order in which they came, and their positions one after the other."""

    first: Ints
    """Place of each sequence's first position, …"""
    last: Ints
    """… and the place behind its last one."""
    workload: Ints
    """Place of its tag in `names`."""
    names: list[str]
    barred: Bools
    """The request itself allows no speculation."""
    came: Floats
    """Unix seconds."""
    after: Ints
    """Sequences of the record that had ended when it came."""
    pause: Floats
    """Seconds since the last of them ended: the pause before it, where nobody else was running."""
    run: Ints
    """Of each position: right ones from it on, itself included, up to the end of its sequence."""
    offered: Ints
    """Of each position: the longest draft that may start there."""
    context: Ints
    """Of each position: tokens before it."""


def drawn_texts(rows: Rows, steps: Steps, hazards: Hazards, workloads: Sequence[str], seed: int) -> tuple[Texts, Ints]:
    """The texts of these rows, and where in them each of the rows' positions lies.

    Args:
        workloads: tag of each bucket.
    """
    text = positions(rows)
    of = rows.sequence[text.row]
    begin = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
    length = np.diff(np.r_[begin, len(of)])
    began, ended = _lifetimes(rows, steps)
    order = np.argsort(began, kind="stable")
    first = np.empty(len(order), dtype=np.int64)
    first[order] = np.cumsum(length[order]) - length[order]
    place = np.arange(len(of)) + np.repeat(first - begin, length)
    names = sorted(set(workloads))
    tags = np.array([names.index(name) for name in workloads], dtype=np.int64)
    head = text.row[begin[order]]
    return (
        Texts(
            first=first[order],
            last=first[order] + length[order],
            workload=tags[rows.bucket[head]],
            names=names,
            barred=rows.bars[head],
            came=began[order],
            after=np.searchsorted(np.sort(ended), began[order], side="right"),
            pause=_pauses(began[order], np.sort(ended)),
            run=_moved(_runs(_drawn(text, hazards, seed), np.repeat(begin + length, length)), place),
            offered=_moved(np.where(text.place == 0, offered(rows)[text.row], np.int64(2**31)), place),
            context=_moved(rows.context[text.row] + text.place, place),
        ),
        place,
    )


def _lifetimes(rows: Rows, steps: Steps) -> tuple[Floats, Floats]:
    """When each sequence's first decode step began and its last one ended, of sequences in their order."""
    decode = np.flatnonzero(rows.decode & (rows.emitted > 0))
    of = rows.sequence[decode]
    first = decode[np.r_[True, of[1:] != of[:-1]]]
    last = decode[np.r_[of[1:] != of[:-1], True]]
    began = steps.ts[rows.step[first]] - steps.duration_ms[rows.step[first]] / 1000
    return began, steps.ts[rows.step[last]]


def _pauses(began: Floats, ended: Floats) -> Floats:
    """From the last end before each beginning to it; 0 where nothing had ended."""
    before = np.searchsorted(ended, began, side="right") - 1
    return np.where(before >= 0, began - ended[np.maximum(before, 0)], 0.0)


def _drawn(text: Positions, hazards: Hazards, seed: int) -> Bools:
    """Whether a draft is right at each position, once and for all; where nobody ever drafted as for a first token."""
    chance = np.where(text.kind == Kind.NEVER, hazards.table[text.rows.bucket[text.row], 0], hazards.chance(text))
    return np.asarray(np.random.default_rng(seed).random(len(text)) < chance)


def _runs(right: Bools, end: Ints) -> Ints:
    """Right positions from each one on, up to the end of its text."""
    wrong = np.where(right, len(right), np.arange(len(right)))
    stop = np.minimum(np.minimum.accumulate(wrong[::-1])[::-1], end)
    return np.asarray(stop - np.arange(len(right)))


def _moved(column: Ints, place: Ints) -> Ints:
    moved = np.empty_like(column)
    moved[place] = column
    return moved
