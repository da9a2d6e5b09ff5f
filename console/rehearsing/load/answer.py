"""What a stream of events says about an answer: its first token, its end, its tokens, or what is wrong with it. Pure.

Kinds of error are those of `console.traffic.client`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from console.refusals import said_in_event, said_in_refusal

_LONGEST_LINE: Final = 4 * 1024 * 1024
_LONGEST_REFUSAL: Final = 64 * 1024
_LONGEST_DETAIL: Final = 300
OK: Final = 200


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None

    def has_token(self) -> bool:
        """A choice that only says who speaks has none; one that ends has, if only a stop token."""
        return bool(self.delta.content or self.delta.reasoning or self.finish_reason)


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class _Event(msgspec.Struct):
    id: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode: Final = msgspec.json.Decoder(_Event).decode


class Answer:
    """Fed with the body of an answer as it comes, each piece with its moment. The moments that it keeps are those."""

    def __init__(self) -> None:
        self.first_token: float | None = None
        self.ended: float | None = None
        """The moment of its last event; None unless it came whole."""
        self.request: str | None = None
        self.prompt_tokens: int | None = None
        self.output_tokens = 0
        self.error: str | None = None
        self.detail = ""
        self._status = OK
        self._rest = b""
        self._whole = False

    def begin(self, status: int) -> None:
        self._status = status

    def take(self, data: bytes, moment: float) -> None:
        """A piece of the body, cut anywhere."""
        if self._status != OK:
            self._rest = (self._rest + data)[:_LONGEST_REFUSAL]
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and self.ended is None and self.error is None:
                self._event(line[5:].strip(), moment)
        if len(self._rest) > _LONGEST_LINE:
            self.fail("bad answer", f"a line of more than {_LONGEST_LINE} bytes")

    def end(self) -> None:
        """The body is complete."""
        if self._status != OK:
            self.fail(f"http {self._status}", said_in_refusal(self._rest))
        elif self.ended is None:
            self.fail("cut short", "the stream ended without [DONE]")

    def lost(self, detail: str) -> None:
        """The connection is gone."""
        if self._status != OK:
            self.end()  # its status says more
        self.fail("connection lost", detail)

    def fail(self, kind: str, detail: str) -> None:
        """Something else is wrong. What was wrong first stays, and nothing spoils what has come whole."""
        if self.error is None and self.ended is None:
            self.error, self.detail = kind, detail[:_LONGEST_DETAIL]

    @property
    def over(self) -> bool:
        """Whether what is still to come can change nothing; an answer that came whole is read to its end all the
        same."""
        return self.error is not None

    def _event(self, data: bytes, moment: float) -> None:
        if data == b"[DONE]":
            self._done(moment)
        elif data:
            try:
                event = _decode(data)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                return self.fail("bad answer", f"not in OpenAI's form: {error}")
            self._take_event(event, moment)

    def _take_event(self, event: _Event, moment: float) -> None:
        if event.error is not None:
            return self.fail("error event", said_in_event(event.error))
        self.request = self.request or event.id
        if self.first_token is None and any(choice.has_token() for choice in event.choices or ()):
            self.first_token = moment
        if event.usage is not None:
            self.prompt_tokens, self.output_tokens = event.usage.prompt_tokens, event.usage.completion_tokens
            self._whole = True

    def _done(self, moment: float) -> None:
        if self._whole:
            self.ended = moment
        else:
            self.fail("bad answer", "the stream did not say how many tokens it has (stream_options.include_usage)")
