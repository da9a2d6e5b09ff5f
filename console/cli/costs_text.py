"""What speculation cost and saved, as JSON or as the console's page of it."""

from __future__ import annotations

from typing import Final

import msgspec

from console.app.balance.page_lines import page_lines
from console.app.drawing.spans import text_of
from store.balance.records import Balance

WIDTH: Final = 100


def as_json(balance: Balance) -> str:
    return msgspec.json.encode(balance).decode()


def as_text(balance: Balance) -> str:
    return "\n".join(text_of(line).rstrip() for line in page_lines(balance, WIDTH))
