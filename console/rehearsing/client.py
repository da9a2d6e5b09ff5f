"""A client of the public port: completions of a given length, whole or as a stream that is left when it is not needed
any more."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, Final, NamedTuple

import httpx

_TIMEOUT: Final = httpx.Timeout(120.0, connect=5.0, pool=5.0)


class NotServed(Exception):
    """The public port did not answer a request as it should: says what came."""


class Answered(NamedTuple):
    """`request`: the id of the answer; `tokens`: of its text."""

    request: str
    tokens: int


class PublicPort:
    """`base_url` as the gateway's, without `/v1`."""

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._http = httpx.AsyncClient(
            base_url=f"{base_url.rstrip('/')}/v1/", headers=headers, timeout=_TIMEOUT, limits=limits, trust_env=False
        )
        self._model: str | None = None

    async def close(self) -> None:
        await self._http.aclose()

    async def model(self) -> str:
        """The first model that is served. Raises NotServed."""
        if self._model is None:
            try:
                answer = await self._http.get("models", timeout=10.0)
                self._model = str(_object(answer.status_code, answer.content)["data"][0]["id"])
            except httpx.HTTPError as error:
                raise NotServed(f"the public port does not answer: {error or type(error).__name__}") from error
            except (LookupError, TypeError) as error:
                raise NotServed("the list of models is not in OpenAI's form") from error
        return self._model

    async def complete(
        self, prompt: str, tokens: int, workload: str, *, header: dict[str, str], body: dict[str, Any]
    ) -> Answered:
        """One answer of exactly `tokens` tokens, the most likely ones. `header` and `body`: what is added to it; of
        `vllm_xargs` what is added to them.

        Raises:
            NotServed: no such answer.
        """
        request = _request(await self.model(), prompt, tokens, workload, body)
        try:
            answer = await self._http.post("completions", json=request, headers=header)
            found = _object(answer.status_code, answer.content)
            return Answered(str(found["id"]), int(found["usage"]["completion_tokens"]))
        except httpx.HTTPError as error:
            raise NotServed(f"the connection was lost: {error or type(error).__name__}") from error
        except (LookupError, TypeError, ValueError) as error:
            raise NotServed("the answer is not in OpenAI's form") from error

    async def stream(self, prompt: str, tokens: int, workload: str) -> AsyncGenerator[str, None]:
        """The same as a stream: the id with every piece. To leave the iteration ends the request.

        Raises:
            NotServed: it is refused, or ends before it should.
        """
        request = _request(await self.model(), prompt, tokens, workload, {"stream": True})
        try:
            async with self._http.stream("POST", "completions", json=request) as answer:
                if answer.status_code != 200:
                    _object(answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    data = line[5:].strip() if line.startswith("data:") else ""
                    if data == "[DONE]":
                        return
                    if data:
                        yield _piece(data)
        except httpx.HTTPError as error:
            raise NotServed(f"the connection was lost: {error or type(error).__name__}") from error
        raise NotServed("a stream ended without [DONE]")


def _request(model: str, prompt: str, tokens: int, workload: str, more: dict[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": model,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0.0,
        "ignore_eos": True,  # of vLLM: an answer has the length that it was asked for
        **more,
    }
    request["vllm_xargs"] = {"workload": workload, **more.get("vllm_xargs", {})}
    return request


def _piece(data: str) -> str:
    try:
        event = json.loads(data)
        if "error" in event:
            raise NotServed(f"a stream ended with an error: {event['error']}")
        return str(event["id"])
    except (ValueError, LookupError, TypeError) as error:
        raise NotServed("a stream is not in OpenAI's form") from error


def _object(status: int, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if status == 200 and isinstance(found, dict):
        return found
    said = found.get("error", found) if isinstance(found, dict) else content[:200].decode(errors="replace")
    said = said.get("message", said) if isinstance(said, dict) else said
    raise NotServed(f"a request was answered {status}: {said}")
