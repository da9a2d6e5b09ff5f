"""Patterns of a value as text holds it behind a name: what separates the two, quoted text, lists, nothing at all.

Repetitions are possessive or bounded: logs may hold lines of megabytes, and what a rule tries in vain it tries once.
"""

from __future__ import annotations

from typing import Final

SEPARATOR: Final = r"""[\\'"\]]{0,8}\s{0,3}(?::=|=>|[=:]|%3[ad])\s{0,3}"""

_JSON_IN_JSON: Final = (
    r"""\\"(?:[^\\"\n]|\\\\(?:\\["\\]|[^\\"]))*+\\" | \\{3}"(?:[^\\"\n]|\\{4}(?:\\{3}["\\]|[^\\"]))*+\\{3}" """
)
"""Each time that JSON is quoted in JSON, one more backslash than twice as many stands before a quote."""

QUOTED: Final = rf"""[bru]{{0,2}}"(?:[^"\\\n]|\\.)*+" | [bru]{{0,2}}'(?:[^'\\\n]|\\.)*+' | {_JSON_IN_JSON}
    | \\+"[^"\n]*" | \\+'[^'\n]*'"""
"""In one line, as JSON and Python write it."""

QUOTED_LINES: Final = (
    r'[bru]{0,2}"{3}(?s:.{0,8000}?)"{3} | '
    + r"[bru]{0,2}'{3}(?s:.{0,8000}?)'{3} | "
    + QUOTED
    + r""" |
    [bru]{0,2}"(?:[^"\\]|\\(?s:.)){0,8000}+" | [bru]{0,2}'(?:[^'\\]|\\(?s:.)){0,8000}+' """
)
"""The same, and what goes on over lines."""

_PLAIN: Final = r"""[^][(){}"'\\]"""
_FLAT: Final = rf"[\[({{](?:{_PLAIN}|{QUOTED}|\\){{0,50000}}+[\])}}]"
NESTED: Final = rf"[\[({{](?:{_PLAIN}|{QUOTED}|\\|{_FLAT}){{0,50000}}+[\])}}]"
"""A list or an object, also over lines, with such a one in it at most."""

VALUE: Final = rf"(?:{QUOTED_LINES}|{NESTED}|[\[{{(][^\n]*|\S+)"
"""Whatever it is; of a list that does not end, the rest of its line."""

ABSENT: Final = r"""(?:none|null|true|false|unset)(?:[\s,;)\]}'"]|$)"""
BOUND: Final = r"""(?:%|ms|us|s|k|M)?(?:[\s,;)\]}'"/]|$)"""
"""What may follow a number that is a count."""
