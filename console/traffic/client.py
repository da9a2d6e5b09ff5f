"""One request to an OpenAI-compatible server, and what became of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx
import msgspec

from console.refusals import said_in_event, said_in_refusal
from console.traffic.plan import Planned

_TIMEOUT: Final = httpx.Timeout(None, connect=5.0, pool=5.0)
ANSWER_SECONDS: Final = 300.0
"""A request without an end after this long counts as a timeout."""


class Outcome(msgspec.Struct, frozen=True):
    """What one request came to. `error` is None or its kind, e.g. `http 503`, `unreachable`, `error event`."""

    output_tokens: int = 0
    error: str | None = None
    detail: str = ""
    server_down: bool = False
    """The server cannot be reached or says that it cannot serve now: no use sending more at once."""
    retry_after: float | None = None
    """Seconds the server asked to wait."""


class Server:
    """Chat completions and models under `base_url` (which ends in `/v1` or the like)."""

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._http = httpx.AsyncClient(
            base_url=base_url.rstrip("/") + "/", headers=headers, timeout=_TIMEOUT, limits=limits, trust_env=False
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def first_model(self) -> str | Outcome:
        """The id of the first model served, or why there is none."""
        try:
            answer = await self._http.get("models", timeout=10.0)
        except httpx.HTTPError as error:
            return _unreachable(error)
        if answer.status_code != 200:
            return _refused(answer.status_code, answer.headers, answer.content)
        try:
            return str(answer.json()["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            return Outcome(error="bad answer", detail="the list of models is not in OpenAI's form")

    async def send(self, request: Planned, model: str) -> Outcome:
        """Send one request and read its answer to the end. Raises nothing but cancellation."""
        body = _body(request, model)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                if request.stream:
                    return await self._streaming(body)
                answer = await self._http.post("chat/completions", json=body)
                if answer.status_code != 200:
                    return _refused(answer.status_code, answer.headers, answer.content)
                return Outcome(output_tokens=int(answer.json()["usage"]["completion_tokens"]))
        except TimeoutError:
            return Outcome(error="timeout", detail=f"no end after {ANSWER_SECONDS:.0f} s")
        except httpx.HTTPError as error:
            return _unreachable(error)
        except (ValueError, LookupError, TypeError) as error:
            return Outcome(error="bad answer", detail=f"not in OpenAI's form: {error!r}")

    async def _streaming(self, body: dict[str, Any]) -> Outcome:
        tokens, complete = 0, False
        async with self._http.stream("POST", "chat/completions", json=body) as answer:
            if answer.status_code != 200:
                return _refused(answer.status_code, answer.headers, await answer.aread())
            # Read past [DONE] to the end of the body: leaving before it looks to the server like a client that gave up.
            async for line in answer.aiter_lines():
                data = line[5:].strip() if line.startswith("data:") else ""
                if data == "[DONE]":
                    complete = True
                elif data and not complete:
                    event = json.loads(data)
                    if "error" in event:
                        detail = said_in_event(event["error"])
                        return Outcome(output_tokens=tokens, error="error event", detail=detail)
                    if event.get("usage"):
                        tokens = int(event["usage"]["completion_tokens"])
        if complete:
            return Outcome(output_tokens=tokens)
        return Outcome(output_tokens=tokens, error="cut short", detail="the stream ended without [DONE]")


def _body(request: Planned, model: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in request.prompt],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "vllm_xargs": {"workload": request.workload},
    }
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _unreachable(error: httpx.HTTPError) -> Outcome:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Outcome(error="unreachable", detail=str(error) or type(error).__name__, server_down=True)
    return Outcome(error="connection lost", detail=str(error) or type(error).__name__)


def _refused(status: int, headers: httpx.Headers, content: bytes) -> Outcome:
    wait = headers.get("retry-after", "")
    return Outcome(
        error=f"http {status}",
        detail=said_in_refusal(content),
        server_down=status in (429, 502, 503),
        retry_after=float(wait) if wait.isascii() and wait.isdigit() else None,
    )
