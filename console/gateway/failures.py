"""What clients are told when there is no answer to pass on, in the shape of OpenAI's API errors."""

from __future__ import annotations

import json
from typing import NamedTuple

from console.gateway.counts import Countable
from console.gateway.headers import Headers

RETRY_AFTER_SECONDS = 5


class Failure(NamedTuple):
    """An answer of the gateway's own. `message` says what to do; `code` is for programs."""

    status: int
    kind: str
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    param: str | None = None
    """The field of the request that it is about."""

    @property
    def json(self) -> bytes:
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return json.dumps({"error": error}).encode()

    @property
    def response_headers(self) -> Headers:
        return [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self.json)).encode()),
            *self.headers,
        ]

    def event(self, sent_tail: bytes) -> bytes:
        """This failure as a last server-sent event; `sent_tail` is what the client got before (its last bytes)."""
        whole = not sent_tail or sent_tail.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
        return (b"" if whole else b"\n\n") + b"data: " + self.json + b"\n\n"


class Refusal(Exception):
    """The request gets an answer of the gateway's own, and is added to these counts."""

    def __init__(self, failure: Failure, *counts: Countable) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.counts = counts


_RETRY = ((b"retry-after", str(RETRY_AFTER_SECONDS).encode()),)
# A refusal does not close the connection: a client that is still sending its body would meet a reset before it has read
# why. The server reads the rest and drops it.

ENGINE_UNAVAILABLE = Failure(
    503, "service_unavailable_error", "engine_unavailable",
    f"The engine is not running or still starting. Try again in {RETRY_AFTER_SECONDS} s; "
    "`specdeck status` on the server says what it is doing.",
    _RETRY,
)  # fmt: skip

ENGINE_LOST = Failure(
    502, "server_error", "engine_connection_lost",
    "The engine closed the connection before the answer was complete; it is being restarted if specdeck owns it. "
    "Send the request again; `specdeck status` on the server says what happened.",
    _RETRY,
)  # fmt: skip

ENGINE_GARBLED = Failure(
    502, "server_error", "engine_bad_response",
    "The engine's answer was not valid HTTP. Send the request again; the engine's log on the server has more.",
)  # fmt: skip

VANILLA_UNAVAILABLE = Failure(
    503, "service_unavailable_error", "vanilla_engine_unavailable",
    "The engine without speculation, which alone takes this request's min_p or logit_bias, is not running or still "
    f"starting. Try again in {RETRY_AFTER_SECONDS} s; `specdeck status` on the server says what it is doing.",
    _RETRY,
)  # fmt: skip

SHUTTING_DOWN = Failure(
    503, "service_unavailable_error", "gateway_stopping",
    f"The gateway is being stopped. Try again in {RETRY_AFTER_SECONDS} s.",
    (*_RETRY, (b"connection", b"close")),
)  # fmt: skip

WRONG_KEY = Failure(
    401, "invalid_request_error", "invalid_api_key",
    "Missing or wrong API key: send it as `Authorization: Bearer KEY`.",
    ((b"www-authenticate", b"Bearer"),),
)  # fmt: skip

NOT_FORWARDABLE = Failure(
    400, "invalid_request_error", "bad_request",
    "The request's path or headers hold characters that HTTP/1.1 does not allow.",
)  # fmt: skip


def malformed_hint(place: str, came: str) -> Failure:
    """`place` is where it stood in the request, `came` what stood there."""
    return Failure(
        400, "invalid_request_error", "malformed_hint",
        f"{place} holds {came}, which is neither true nor false. Write 1, 0, true or false, or leave it out; "
        "1 or true turns speculation off for this request.",
        param=place,
    )  # fmt: skip


def unsupported_parameters(names: tuple[str, ...]) -> Failure:
    """`names`: those of `min_p` and `logit_bias` that the request uses."""
    return Failure(
        400, "invalid_request_error", "unsupported_with_speculation",
        f"vLLM does not support {' and '.join(names)} in an engine with speculative decoding, not even at K = 0. Leave "
        f"{'it' if len(names) == 1 else 'them'} out; or whoever runs specdeck gives it a second engine without "
        "speculation (`--vanilla-engine`), which such requests then go to.",
        param=names[0],
    )  # fmt: skip


def body_too_large(limit: int) -> Failure:
    return Failure(
        413, "invalid_request_error", "request_too_large",
        f"The request body is larger than {limit} bytes, the most this gateway passes on (--max-body).",
    )  # fmt: skip
