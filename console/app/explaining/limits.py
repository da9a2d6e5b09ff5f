"""The terms that a K is the minimum of, in the order in which ties are decided, in words. Pure."""

from __future__ import annotations

from typing import Final

from engine.records import LIMITS, Limit

WORDS: Final[dict[Limit, str]] = {
    "off": "mode off: nobody drafts",
    "hint": "the request itself said disable_speculation",
    "lane": "the workload is in the vanilla lane",
    "operator": "the operator's fallback, K 0 for all",
    "fallback": "tier 2 turned the workload off: its drafts brought nothing",
    "probe": "a probe: a few steps at another K, to measure",
    "cap": "the operator's cap",
    "adaptive": "the controller's K of the workload",
    "schedule": "the schedule's K at this number of running sequences",
    "static": "the K of mode static",
    "max": "the engine's start-up maximum",
}

ORDER: Final = (
    "A sequence's K is the least of all terms; of equal ones the first in this order names it. The batch K is the "
    "largest of its sequences'; each one's drafts are trimmed to its own."
)


def limit_words(term: str) -> str:
    """What a term means; of a station of another version its own name."""
    return next((words for known, words in WORDS.items() if known == term), term)


def order_words() -> str:
    """All terms in their order."""
    return " · ".join(LIMITS)
