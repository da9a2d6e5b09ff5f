"""What clients are told when there is no answer to pass on, in the shape of OpenAI's API errors."""

from __future__ import annotations

import json
from typing import NamedTuple

from console.gateway.headers import Headers

RETRY_AFTER_SECONDS = 5


class Failure(NamedTuple):
    """An answer of the gateway's own. `message` says what to do; `code` is for programs."""

    status: int
    kind: str
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def json(self) -> bytes:
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
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


def body_too_large(limit: int) -> Failure:
    return Failure(
        413, "invalid_request_error", "request_too_large",
        f"The request body is larger than {limit} bytes, the most this gateway passes on (--max-body).",
    )  # fmt: skip
