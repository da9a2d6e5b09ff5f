"""The id that a client was answered with, out of vLLM's own of one of its sequences.

The client's id is in vLLM's own: a completion's prompts are numbered behind it (`cmpl-ID-0`), the choices of a prompt
before it (`1_cmpl-ID-0`), and eight random characters follow unless that is switched off.
"""

from __future__ import annotations

import re
from typing import Final

_CHOICE: Final = "^[0-9]+_"
_RANDOM: Final = "-[0-9a-f]{8}$"
_PROMPT: Final = "-[0-9]+$"
_NUMBERED: Final = "cmpl-"

_around: Final = re.compile(f"{_CHOICE}|{_RANDOM}")
_prompt: Final = re.compile(_PROMPT)


def answered_as(request: str) -> str:
    """The client's id of vLLM's `request`."""
    numbered = _around.sub("", request)
    return _prompt.sub("", numbered) if numbered.startswith(_NUMBERED) else numbered


def answered_sql(request: str) -> str:
    """The same in DuckDB's SQL, of an expression for vLLM's id."""
    numbered = f"regexp_replace(regexp_replace({request}, '{_CHOICE}', ''), '{_RANDOM}', '')"
    return (
        f"CASE WHEN starts_with({numbered}, '{_NUMBERED}') THEN regexp_replace({numbered}, '{_PROMPT}', '') "
        f"ELSE {numbered} END"
    )
