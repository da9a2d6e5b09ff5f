"""The sampling parameters that vLLM refuses while it speculates, told from a request's body.

Source: `SamplingParams._validate_spec_decode` and `__post_init__` of vLLM 0.32, and the request types of its API
server. What is in doubt (a malformed value, a default of the engine's own) is passed on, and the engine says so itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_EPSILON: Final = 1e-5
"""vLLM's `_SAMPLING_EPS`: up to it `min_p` is off."""

_WITH_BEAMS: Final = frozenset({"/v1/chat/completions", "/v1/completions"})
"""Beam search makes its own sampling parameters, without these."""

_WITHOUT_THESE: Final = frozenset({"/v1/messages"})


def refused_with_speculation(path: str, field: Callable[[str], Any]) -> tuple[str, ...]:
    """The names among `min_p` and `logit_bias` for which an engine with speculation refuses the request.

    `field` gives a top-level value of the body, None when absent.
    """
    if path in _WITHOUT_THESE or (path in _WITH_BEAMS and field("use_beam_search")):
        return ()
    min_p, temperature = _number(field("min_p")), _number(field("temperature"))
    sampled = temperature != 0  # greedy forgets min_p; vLLM lifts any other temperature to 0.01 at least
    bias = field("logit_bias")
    names = []
    if min_p is not None and min_p > _EPSILON and sampled:
        names.append("min_p")
    if isinstance(bias, dict) and bias:
        names.append("logit_bias")
    return tuple(names)


def _number(value: Any) -> float | None:
    """A number as the API server takes it (also written as text), None for anything else."""
    if not isinstance(value, (bool, int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
