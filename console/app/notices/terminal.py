"""What a terminal is written so that its desktop shows a notification: OSC 9 or OSC 777. Pure."""

from __future__ import annotations

from typing import Final, Literal

from console.notices.words import plain

LONGEST: Final = 240
"""Characters; a notification shows no more, and a terminal may refuse a longer sequence."""

Form = Literal["osc9", "osc777"]


def notification(text: str, form: Form, *, tmux: bool = False) -> str:
    """The sequence that shows `text`. In tmux it is wrapped, which wants `set -g allow-passthrough on`."""
    said = plain(text, LONGEST)
    sequence = f"\x1b]9;specdeck: {said}\x07" if form == "osc9" else f"\x1b]777;notify;specdeck;{said}\x07"
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\" if tmux else sequence
