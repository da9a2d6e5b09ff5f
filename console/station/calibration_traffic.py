"""The requests by which an engine is calibrated: a batch of ordinary texts in one request, straight to vLLM."""

from __future__ import annotations

import json
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import httpx

from store.buckets import CALIBRATION

PROMPT_TOKENS: Final = 420
"""No prompt has more, whatever the tokenizer."""

_CHARACTERS: Final = 360
"""About 100 tokens: with what is generated, the middle of the shortest contexts' band, not its lower end, where steps
are cheaper than those of the traffic to come."""

_PROMPTS: Final = (
    "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n    return",
    "1. bread\n2. butter\n3. bread and butter\n4. bread\n5. butter\n6.",
    "The ferry leaves at nine. The ferry returns at noon. The ferry",
    "SELECT name, price FROM books;\nSELECT name, price FROM",
    "Question: what is two plus two? Answer: four. Question: what is two plus three? Answer:",
    "My grandmother kept bees behind the house, and in the summer we",
    "for (int i = 0; i < 10; i++) {\n    total += i;\n}\nfor (int j = 0; j < 10; j++) {",
    "Monday: rain. Tuesday: rain. Wednesday: sun. Thursday: rain. Friday:",
)
"""Some repeat themselves: drafters that look things up draft nothing otherwise."""

_URL: Final = "http://engine/v1/completions"
_TIMEOUT: Final = httpx.Timeout(None, connect=5.0)


class CalibrationRefused(Exception):
    """vLLM did not generate: says why."""


class CalibrationRequests:
    """`uds`: the unix socket of vLLM's API server."""

    def __init__(self, uds: Path) -> None:
        self._uds = uds

    async def generate(self, batch: int, drafting: bool, tokens: int) -> None:
        """Have `batch` sequences of at most `tokens` tokens generated; cancelled, it closes the connection and vLLM
        aborts them.

        Raises:
            CalibrationRefused: an answer other than 200, or none.
        """
        try:
            # `verify`: no certificates to load, which would hold up the loop for tens of milliseconds.
            transport = httpx.AsyncHTTPTransport(uds=str(self._uds), verify=False)
            async with httpx.AsyncClient(transport=transport, timeout=_TIMEOUT, trust_env=False) as client:
                answer = await client.post(_URL, json=request_body(batch, drafting, tokens))
        except httpx.HTTPError as error:
            raise CalibrationRefused(f"its API server gave no answer: {error or type(error).__name__}") from error
        if answer.status_code != httpx.codes.OK:
            raise CalibrationRefused(f"its API server answered {answer.status_code}: {_reason(answer.content)}")


def request_body(batch: int, drafting: bool, tokens: int) -> dict[str, Any]:
    """One request for `batch` sequences: they arrive together."""
    return {
        "prompt": [_prompt(number, text) for number, text in enumerate(islice(cycle(_PROMPTS), batch), 1)],
        "max_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0.0,
        "vllm_xargs": {"workload": CALIBRATION, "disable_speculation": int(not drafting)},
    }


def _prompt(number: int, text: str) -> str:
    return f"{number}. " + "\n".join(islice(cycle((text,)), max(1, round(_CHARACTERS / len(text)))))


def _reason(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"]["message"])[:200]
    except (ValueError, LookupError, TypeError):
        return content[:200].decode(errors="replace")
