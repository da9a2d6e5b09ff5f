"""What may go to the clipboard: bounded, and no more than text. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing.spans import clean

LONGEST: Final = 50_000
"""Bytes: many terminals drop an OSC 52 of more than about 75,000 in base64 without a word."""

CUT: Final = "… cut here"
HINT: Final = "Clipboard still empty? The terminal must take OSC 52; in tmux: set -g set-clipboard on."


def copyable(text: str) -> str:
    """The text without control characters and trailing blanks, cut at a line's end to at most `LONGEST` bytes."""
    lines = [clean(line).rstrip() for line in text.split("\n")]
    kept: list[str] = []
    room = LONGEST - len(CUT.encode()) - 1
    for line in lines:
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            return "\n".join([*kept, CUT])
        kept.append(line)
    return "\n".join(kept).strip("\n")


def copied_words(text: str) -> str:
    """What was copied, in words: its size and how it begins."""
    lines = text.split("\n")
    begin = lines[0].strip()
    begin = f"{begin[:59]}…" if len(begin) > 60 else begin
    size = f"{len(lines)} lines" if len(lines) > 1 else f"{len(text)} characters"
    return f"Copied {size}: {begin}"
