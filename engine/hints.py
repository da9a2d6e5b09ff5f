"""What a request says about itself: its workload tag and `disable_speculation`, from `SamplingParams.extra_args`.

Over HTTP both arrive through `vllm_xargs`, whose values are only str, int, float or lists: JSON `true` becomes 1 and
the text `"false"` would be truthy. So spelling is read here, and nothing else than the known spellings is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MAX_TAG_LENGTH: Final = 128
"""Characters of a workload tag that are kept: a tag is a name, not a document."""

_TRUE: Final = frozenset({"1", "true"})
_FALSE: Final = frozenset({"0", "false", ""})


class Hints(NamedTuple):
    """`workload` None is untagged. `error` holds a malformed `disable_speculation` as it came; the default held."""

    workload: str | None
    disable_speculation: bool
    error: str | None


NO_HINTS: Final = Hints(None, False, None)


def parse_hints(extra_args: Mapping[str, Any] | None) -> Hints:
    """Read the hints of a request; never raises, since a bad hint must not end an engine."""
    if not extra_args:
        return NO_HINTS
    disable, error = parse_flag(extra_args.get("disable_speculation"))
    return Hints(parse_workload(extra_args.get("workload")), disable, error)


def parse_workload(value: Any) -> str | None:
    """A tag as it is, cut to `MAX_TAG_LENGTH`; None for a missing, empty or non-scalar one."""
    if value is None or isinstance(value, (list, dict, bool)):
        return None
    tag = str(value).strip()[:MAX_TAG_LENGTH]
    return tag or None


def parse_flag(value: Any) -> tuple[bool, str | None]:
    """1/0/true/false in any of the types it may arrive as; anything else is (False, what came)."""
    if value is None:
        return False, None
    if isinstance(value, (list, dict)):
        return False, repr(value)[:80]
    text = str(int(value)) if isinstance(value, float) and value in (0.0, 1.0) else str(value).strip().lower()
    if text in _TRUE:
        return True, None
    if text in _FALSE:
        return False, None
    return False, repr(value)[:80]
