"""The prompt of a request as text, out of its body. Nothing else of the body is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from console.gateway.body import JsonBody, read_body
from engine.records import Passage

READ: Final = frozenset(("/v1/chat/completions", "/v1/completions"))
"""Paths whose requests and answers are understood here."""

_SHOWN: Final = {
    "image_url": "image", "image_pil": "image", "image_embeds": "image", "input_image": "image",
    "input_audio": "audio", "audio_url": "audio", "video_url": "video",
}  # fmt: skip
_LONGEST_NAME: Final = 40


class Unread(ValueError):
    """It has no form that is understood here."""


def prompt_of(path: str, raw: bytes) -> Iterator[Passage]:
    """What was asked: a passage a message of a chat, or a prompt.

    What is no text stands in brackets, as `[image]` or `[12 token ids]`.

    Raises:
        Unread: no prompt can be made out.
    """
    body = read_body(raw)
    if body is None:
        raise Unread("no JSON object")
    yield from _messages(body) if path == "/v1/chat/completions" else _prompts(body)


def _messages(body: JsonBody) -> Iterator[Passage]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Unread("no messages")
    for message in messages:
        if not isinstance(message, dict):
            raise Unread("a message that is no object")
        role = message.get("role")
        text = "\n".join((*_contents(message.get("content")), *_calls(message.get("tool_calls"))))
        yield Passage(sound(text), sound(role[:_LONGEST_NAME]) if isinstance(role, str) else None)


def _contents(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield part if isinstance(part, str) else _part(part)
    elif content is not None:
        raise Unread("a content that is neither text nor parts")


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        raise Unread("a part that is no object")
    kind = part.get("type")
    for field in ("text", "refusal", "thinking"):
        if isinstance(part.get(field), str) and kind in (None, field, f"input_{field}", f"output_{field}"):
            return str(part[field])
    return f"[{_SHOWN.get(kind, kind)[:_LONGEST_NAME] if isinstance(kind, str) else 'no text'}]"


def _calls(calls: Any) -> Iterator[str]:
    """Calls of tools that the model made before: it made them of text."""
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield f"{function.get('name')} {function.get('arguments')}"


def _prompts(body: JsonBody) -> Iterator[Passage]:
    prompt = body.get("prompt")
    if _token_ids(prompt):
        yield Passage(f"[{len(prompt)} token ids]")
        return
    several = prompt if isinstance(prompt, list) else [prompt]
    if not several:
        raise Unread("no prompt")
    for number, one in enumerate(several):
        if _token_ids(one):
            yield Passage(f"[{len(one)} token ids]", number=number)
        elif isinstance(one, str):
            yield Passage(sound(one), number=number)
        else:
            raise Unread("a prompt that is neither text nor token ids")


def _token_ids(prompt: Any) -> bool:
    return isinstance(prompt, list) and bool(prompt) and all(isinstance(one, int) for one in prompt)


def sound(text: str) -> str:
    """Text that can be written as UTF-8: half a surrogate pair, which JSON can hold, becomes �."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
