"""Probes: short blocks of steps in which the policy is left to measure. Knows orders and steps, no vLLM and no clock.

An order waits its steps, then begins with the first step that it would touch, never within `QUIET_STEPS` of a change of
the executed K, and lasts for `steps` askings. It ends early when the policy changes, when the K that the policy alone
would execute changes or the probe's own does, or when it touches nobody any more. A step has one kind of probe at most.

Drafts are verified one step after they were asked for. With a block that asks at steps s … s+n−1:

    step        s     s+1   …   s+n−1   s+n
    k_verify    K     K'        K'      K'
    k_draft     K'    K'        K'      K
    probe       –     yes       yes     yes     (whether what was verified was asked for under the probe)

So n frames carry the mark, those that verified what the block asked for; the first of them is the one whose predecessor
has none: two blocks are never nearer than `QUIET_STEPS`. Under `k0` all marked frames but the last have `k_verify` and
`k_draft` 0: clean K = 0 steps (under a fixed batch K there are none, since drafting goes on).
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from engine.policy import ProbeOrder
from engine.sequences import SequenceClass

QUIET_STEPS: Final = 20
"""Steps that the executed K must have been the same before a block begins."""

_REMEMBERED: Final = 256
"""Ids of orders that are known to be dealt with."""

_MASK: Final = 2**64 - 1


class Ordered(NamedTuple):
    """An order and the station that gave it: another station counts its ids anew."""

    station: str
    order: ProbeOrder


class Block:
    """One order in execution. `plain_k`: K that the policy alone would execute, `k`: K that the probe executes."""

    __slots__ = ("begun", "k", "left", "order", "plain_k", "policy", "wait")

    def __init__(self, order: ProbeOrder) -> None:
        self.order = order
        self.wait = order.wait
        self.left = order.steps
        self.begun = False
        self.policy: object = None
        self.plain_k = self.k = 0


class Probing:
    """Which order is under way, step by step. `give` is called by the policy thread, the rest by the scheduler's.

    Each step calls `candidate`, `begins_or_goes_on` if there was one, and `executed`, in this order.
    """

    def __init__(self) -> None:
        self._ordered: Ordered | None = None
        self._looked_at: Ordered | None = None
        self._block: Block | None = None
        self._known: deque[tuple[str, int]] = deque(maxlen=_REMEMBERED)
        self._executed = -1
        self._quiet = 0

    def give(self, station: str, order: ProbeOrder) -> None:
        """A station wants `order` made next (validated). The same again is no second order."""
        self._ordered = Ordered(station, order)

    def candidate(self) -> ProbeOrder | None:
        """The order that is under way or may begin with this step."""
        if self._ordered is not self._looked_at:
            self._take_over()
        block = self._block
        if block is None:
            return None
        if not block.begun:
            if block.wait > 0:
                block.wait -= 1
                return None
            if self._quiet < QUIET_STEPS:
                return None
        return block.order

    def begins_or_goes_on(self, policy: object, plain_k: int, probed_k: int, touches: bool) -> bool:
        """Whether this step belongs to the block of the candidate.

        Args:
            policy: what the lengths were resolved by; another object is another policy.
            plain_k: K that the policy alone would execute at this step.
            probed_k: K that the probe would execute.
            touches: whether the probe sets anybody's length.
        """
        block = self._block
        assert block is not None
        if not block.begun:
            if not touches:
                return False
            block.begun = True
            block.policy, block.plain_k, block.k = policy, plain_k, probed_k
        elif not touches or (policy, plain_k, probed_k) != (block.policy, block.plain_k, block.k):
            self._end()
            return False
        block.left -= 1
        return True

    def executed(self, k: int) -> None:
        """The step is decided: it executes `k`."""
        if k == self._executed:
            self._quiet += 1
        else:
            self._executed = k
            self._quiet = 0
        if self._block is not None and self._block.left == 0:
            self._end()

    def _take_over(self) -> None:
        """Let the newest order take the place of one that has not begun; a block under way goes on first."""
        ordered = self._ordered
        if ordered is None or (self._block is not None and self._block.begun):
            return
        self._looked_at = ordered
        key = (ordered.station, ordered.order.id)
        if key not in self._known:
            self._known.append(key)
            self._block = Block(ordered.order)

    def _end(self) -> None:
        self._block = None
        self._quiet = 0


class Draws(NamedTuple):
    """Random draft lengths of one step, one for each sequence of the classes that a `deep` probe is about.

    A length is computed from the sequence's handle whenever it is needed and kept nowhere: sequences of all other
    classes cost nothing, and the step that trims and the one that reports come to the same.
    """

    seed: int
    """Drawn anew for each step."""
    longest: dict[SequenceClass, int]
    """Tokens; ≥ 1."""

    def length(self, cls: SequenceClass, handle: int, most: int) -> int | None:
        """What the sequence `handle` of `cls` is asked for; None where its class has no drawn lengths, or where `most`,
        what still stands of the class's length, has been lowered below it since."""
        longest = self.longest.get(cls)
        if longest is None:
            return None
        k = drawn(self.seed, handle, longest)
        return k if k <= most else None


def drawn(seed: int, handle: int, longest: int) -> int:
    """A length from 1 to `longest`, all equally likely, the same for the same seed and handle.

    The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a generator object for each sequence and step
    would cost many times as much.
    """
    mixed = (seed + handle * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return 1 + (mixed ^ (mixed >> 31)) % longest
