"""A drawn request as the HTTP request that is sent for it."""

from __future__ import annotations

from typing import Any

import h11
import msgspec

from console.rehearsing.load.target import Target
from store.rehearsal.records import DrawnRequest


def body(request: DrawnRequest, model: str, tag_prefix: str, cache_salt: str) -> bytes:
    """A chat completion in OpenAI's form, with vLLM's own parameters.

    Every arm sends the same prompts: under a `cache_salt` of its own a pass finds nothing of the passes before it in
    vLLM's prefix cache, and its own prefixes as ever.
    """
    said: dict[str, Any] = {
        "model": model,
        "messages": request.messages,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stream": True,
        "stream_options": {"include_usage": True},
        "vllm_xargs": {"workload": tag_prefix + request.workload},
        "cache_salt": cache_salt,
    }
    if request.exact:
        said |= {"ignore_eos": True, "min_tokens": request.max_tokens}
    return msgspec.json.encode(said)


def events(where: Target, content: bytes, api_key: str | None) -> list[h11.Event]:
    """The request on a connection of its own: kept ones go stale, and the request that meets one counts as lost.

    Raises:
        ValueError: path or key cannot be sent.
    """
    headers = [
        ("host", where.authority),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("content-length", str(len(content))),
        ("connection", "close"),
    ]
    if api_key is not None:
        headers.append(("authorization", f"Bearer {api_key}"))
    try:
        head = h11.Request(method="POST", target=where.path, headers=headers)
    except (h11.LocalProtocolError, UnicodeEncodeError):
        raise ValueError(f"{where.path!r} or the API key holds characters that HTTP does not allow") from None
    return [head, h11.Data(data=content), h11.EndOfMessage()]
