"""One message about one or many things in words: literal text, one line, safe to print. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from console.notices.limiter import Message
    from console.notices.watch import Notice


NAMED: Final = 3
"""Of many the gravest so many are told with their sentence."""
LONGEST: Final = 400
"""Characters of one sentence."""

GLYPHS: Final = {"info": "·", "warn": "▲", "critical": "■"}

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_LINK: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://", re.I)


def plain(text: str, longest: int = LONGEST) -> str:
    """Outside text as one line that moves no cursor, changes no direction, and is nowhere a link."""
    safe = _LINK.sub("", _CONTROL.sub("·", text[: 2 * longest]))
    return safe if len(safe) <= longest else f"{safe[: longest - 1]}…"


def sentence(notice: Notice) -> str:
    """One thing, with what is new about it."""
    text = plain(notice.text)
    if notice.what == "done":
        return text
    if notice.what in ("over", "passed"):
        return f"✓ {'over' if notice.what == 'over' else 'came and went'}: {text}"
    return f"{GLYPHS[notice.severity]} {'graver: ' if notice.what == 'graver' else ''}{text}"


def lines(message: Message) -> list[str]:
    """What to show: a head where there are several, the gravest of them, and what is not shown."""
    notices = message.notices
    shown = [sentence(notice) for notice in notices[:NAMED]]
    if len(notices) > 1:
        shown.insert(0, f"{counts(notices)}:")
    if len(notices) > NAMED:
        shown.append(f"and {len(notices) - NAMED} more")
    shown += _not_shown(message)
    return shown


def one_line(message: Message, longest: int = LONGEST) -> str:
    """The same in one line."""
    return plain(" ".join(lines(message)), longest)


def counts(notices: list[Notice]) -> str:
    """`5 alerts: 2 critical, 1 over`, with what others did counted beside."""
    alerts = [notice for notice in notices if notice.what != "done"]
    acts = len(notices) - len(alerts)
    begun = [notice for notice in alerts if notice.what != "over"]
    parts = []
    if alerts:
        critical = sum(notice.severity == "critical" for notice in begun)
        over = len(alerts) - len(begun)
        facts = [f"{critical} critical" if critical else "", f"{over} over" if over else ""]
        told = ", ".join(fact for fact in facts if fact)
        parts.append(f"{_number(len(alerts), 'alert')}{f' ({told})' if told else ''}")
    if acts:
        parts.append(_number(acts, "act of others", "acts of others"))
    return " and ".join(parts)


def _not_shown(message: Message) -> list[str]:
    told = []
    if message.held_back:
        told.append(f"{message.held_back} of them held back by the limit on messages")
    if message.left_out:
        critical = f", {message.left_out_critical} of them critical" if message.left_out_critical else ""
        told.append(f"{message.left_out} more could not be told{critical}: the Alerts screen has all")
    return [f"({'; '.join(told)})"] if told else []


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
