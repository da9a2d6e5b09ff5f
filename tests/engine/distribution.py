"""Whether two samples of tokens can come from one distribution: Pearson's chi-square, as a test of homogeneity.

Tokens that are too rare for the approximation are pooled into one category (expected counts of 5 or more, Cochran's
rule). Several prompts make one test: their statistics add up, and so do their degrees of freedom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from scipy import stats

LEAST_EXPECTED = 5.0

SIGNIFICANCE = 1e-4
"""Below this the distributions differ: a right engine falls under it once in 10,000 tests."""

PROMPTS = (
    "She looked at him and",
    "for i in range(",
    "import numpy as np\nimport",
    "The coin landed on",
    "The opposite of hot is",
    "Roses are red, violets are",
)
"""Short ones with few likely continuations (of the bundled target, at temperature 0.8)."""

TOKENS = 3
"""The first comes from the prefill, so only what follows it is verified."""


class Agreement(NamedTuple):
    statistic: float
    freedom: int
    categories: int

    @property
    def p(self) -> float:
        """Chance of a statistic at least this large, were the distributions equal."""
        return float(stats.chi2.sf(self.statistic, self.freedom)) if self.freedom else 1.0


def agreement(first: Sequence[Hashable], second: Sequence[Hashable]) -> Agreement:
    """Of two samples of one prompt."""
    table = pooled(Counter(first), Counter(second))
    if len(table) < 2:
        return Agreement(0.0, 0, len(table))
    found = stats.chi2_contingency([list(row) for row in zip(*table, strict=True)], correction=False)
    return Agreement(float(found.statistic), int(found.dof), len(table))


def together(parts: Sequence[Agreement]) -> Agreement:
    """One test of all prompts: sums of independent chi-squares."""
    return Agreement(
        sum(part.statistic for part in parts), sum(part.freedom for part in parts), sum(p.categories for p in parts)
    )


def pooled(first: Mapping[Hashable, int], second: Mapping[Hashable, int]) -> list[tuple[int, int]]:
    """(count in the first, in the second) of each category, the rare ones as one: each expected count is 5 or more."""
    smaller = min(sum(first.values()), sum(second.values()))
    total = sum(first.values()) + sum(second.values())
    pairs = sorted(((first.get(key, 0), second.get(key, 0)) for key in {*first, *second}), key=sum)
    rest = (0, 0)
    while pairs and (_rare(pairs[0], smaller, total) or (rest != (0, 0) and _rare(rest, smaller, total))):
        rest = (rest[0] + pairs[0][0], rest[1] + pairs[0][1])
        pairs.pop(0)
    return pairs if rest == (0, 0) else [*pairs, rest]


def _rare(pair: tuple[int, int], smaller: int, total: int) -> bool:
    return sum(pair) * smaller / total < LEAST_EXPECTED


def by_position(samples: Mapping[str, Sequence[Sequence[int]]], others: Mapping[str, Any]) -> list[Agreement]:
    """For each of the first `TOKENS` tokens one test over all prompts; samples are token lists by prompt."""
    return [
        together(
            [
                agreement([tokens[place] for tokens in samples[prompt]], [tokens[place] for tokens in others[prompt]])
                for prompt in samples
            ]
        )
        for place in range(TOKENS)
    ]
