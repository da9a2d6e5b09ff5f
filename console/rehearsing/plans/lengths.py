"""Lengths in tokens without a tokenizer, and real text brought to a wanted length.

A token is taken for four bytes of UTF-8. Measured on our own sets with the bundled model's tokenizer: 3.7 for code, 4.5
to 4.8 for prose; of other languages and tokenizers it may be off by half.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from console.rehearsing.plans.prompt_files import Prompt
from store.rehearsal.records import Message

BYTES_PER_TOKEN: Final = 4.0

_FEWEST_BYTES_PER_TOKEN: Final = 2.5
"""No text of ours has fewer: what must fit is reckoned with it."""

TEMPLATE_TOKENS: Final = 40
"""Room for what a chat template puts around a prompt."""


class Lengths(NamedTuple):
    """Of one request of a trace. `clipped`: it was longer."""

    prompt_tokens: int
    output_tokens: int
    clipped: bool


def about_tokens(messages: Sequence[Message]) -> int:
    return round(sum(len(message.content.encode()) for message in messages) / BYTES_PER_TOKEN)


def fitting(prompt_tokens: int, output_tokens: int, max_model_len: int | None) -> Lengths:
    """Lengths that an engine with this context takes: the answer keeps at least half of it, the prompt what is left.

    A prompt is clipped more than its tokens alone would need, since its text is measured in bytes.
    """
    if max_model_len is None:
        return Lengths(prompt_tokens, output_tokens, False)
    room = max(2, max_model_len - TEMPLATE_TOKENS)
    safe = _FEWEST_BYTES_PER_TOKEN / BYTES_PER_TOKEN
    answer = min(output_tokens, max(room // 2, room - ceil(prompt_tokens / safe)))
    prompt = min(prompt_tokens, max(1, int((room - answer) * safe)))
    return Lengths(prompt, answer, (prompt, answer) != (prompt_tokens, output_tokens))


def of_length(prompts: Sequence[Prompt], place: int, tokens: int) -> tuple[Message, ...]:
    """About `tokens` tokens of the prompts from `place` on, around the end where they are too few, as one message."""
    wanted = max(1, round(tokens * BYTES_PER_TOKEN))
    parts, length = [], 0
    while length < wanted:
        part = "\n\n".join(message.content for message in prompts[place % len(prompts)].messages)
        parts.append(part)
        length += len(part.encode()) + 2
        place += 1
    text = "\n\n".join(parts).encode()[:wanted].decode(errors="ignore")
    return (Message("user", text.strip() or text),)
