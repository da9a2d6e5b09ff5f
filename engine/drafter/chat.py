"""A prompt as the target's tokens: what a chat request would make of it."""

from __future__ import annotations

from typing import Any


def as_asked(tokenizer: Any, text: str) -> list[int]:
    """With the target's chat template and the turn given to the assistant; plain where the target has none."""
    if getattr(tokenizer, "chat_template", None) is None:
        return list(tokenizer(text)["input_ids"])
    messages = [{"role": "user", "content": text}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)
    return list(ids["input_ids"] if hasattr(ids, "keys") else ids)
