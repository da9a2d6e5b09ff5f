"""What an OpenAI-compatible server says when it refuses a request, or ends a stream with an error."""

from __future__ import annotations

import json
from typing import Any


def said_in_refusal(content: bytes) -> str:
    """The message in the body of an answer with an error status; where there is none, how the body begins."""
    try:
        return str(json.loads(content)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return content[:200].decode(errors="replace")


def said_in_event(error: Any) -> str:
    """The message of a stream's `error` event."""
    return str(error.get("message", "") if isinstance(error, dict) else error)
