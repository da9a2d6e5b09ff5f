"""A rule: what is looked for in text, and what stands there instead.

What stands in for something is first a character of Unicode's private use area, so that no later rule takes it for
text; the readable form comes last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

_SHOWN: Final = ("<secret>", "<credentials>", "<request>", "<text>", "<e-mail>", "<address>", "~", "<user>", "<host>")
SECRET, LOGIN, REQUEST, TEXT, MAIL, ADDRESS, HOME, USER, HOST = map(chr, range(0xE000, 0xE009))
_READABLE: Final = {0xE000 + number: text for number, text in enumerate(_SHOWN)}
_TAKEN: Final = re.compile("[\ue000-\ue008]")


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str]


def rule(pattern: str, put: str | Callable[[re.Match[str]], str]) -> Rule:
    """Upper and lower case are one; white space in `pattern` is layout."""
    return Rule(re.compile(pattern, re.I | re.X), put)


def readable(text: str) -> str:
    """Stand-ins as a reader sees them."""
    return text.translate(_READABLE)


def without_stand_ins(text: str) -> str:
    """What comes from outside can't pretend to be redacted already."""
    return _TAKEN.sub("\ufffd", text)
