"""Whether a vLLM engine answers, and how far one that is starting has come."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

import httpx

MEMBER_NAME: Final = "VLLM::"
"""How vLLM names its EngineCore and worker processes; for `ManagedProcess.remember_members`."""

_TIMEOUT: Final = 2.0
_URL: Final = "http://engine/health"


class Phase(NamedTuple):
    """A step of an engine's start, in the order in which they come."""

    name: str
    done: bool


_PHASES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("process", re.compile(r"vLLM server|APIServer|EngineCore|INFO \d\d-\d\d")),
    ("engine core", re.compile(r"Initializing a V1 LLM engine|EngineCore.*(init|Initializ)", re.IGNORECASE)),
    ("weights", re.compile(r"Loading weights took|Model loading took|Loading model weights took", re.IGNORECASE)),
    ("KV cache", re.compile(r"KV cache size|# (GPU|CPU) blocks|Maximum concurrency", re.IGNORECASE)),
    ("warm-up", re.compile(r"init engine .*took|Warming up done|Graph capturing finished", re.IGNORECASE)),
    ("serving", re.compile(r"Application startup complete")),
)


def healthy(uds: Path, timeout: float = _TIMEOUT) -> bool:
    """Whether `GET /health` on the unix socket answers 200 within `timeout` seconds. Blocks."""
    if not uds.exists():
        return False
    try:
        transport = httpx.HTTPTransport(uds=str(uds), verify=False)
        with httpx.Client(transport=transport, timeout=timeout, trust_env=False) as client:
            return client.get(_URL).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


async def healthy_async(uds: Path, timeout: float = _TIMEOUT) -> bool:
    """`healthy` for an event loop."""
    if not uds.exists():
        return False
    try:
        # No certificates to load, here and above: that would hold up the loop for tens of milliseconds at every look.
        transport = httpx.AsyncHTTPTransport(uds=str(uds), verify=False)
        async with httpx.AsyncClient(transport=transport, timeout=timeout, trust_env=False) as client:
            return (await client.get(_URL)).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def startup_phases(log_text: str) -> list[Phase]:
    """The steps of a start and which are done, by vLLM's log of this start (the text since it was launched).

    A later step that shows makes the earlier ones done, so that a reworded line of vLLM's cannot hold all up.
    """
    seen = [bool(pattern.search(log_text)) for _, pattern in _PHASES]
    return [Phase(name, any(seen[index:])) for index, (name, _) in enumerate(_PHASES)]


def failure_reason(log_text: str) -> str | None:
    """The last line of the log that names an error, without vLLM's prefix; None when there is none."""
    for line in reversed(log_text.splitlines()):
        found = re.search(r"\b([A-Z]\w*(?:Error|Exception|Exit)\b.*)", line)
        if found:
            return found.group(1).strip()
    return None
