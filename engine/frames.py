"""The wire between the engine's scheduler and the station: numbered frames, columns over a step's sequences.

One ZeroMQ message is one msgpack `Frame` (numbered, lost ones are counted) or one `Announcement` (state, said again
whenever a station says hello and every 10 s, so never numbered). The columns of a step are little-endian int32 in
column-major order: packing and unpacking 256 rows costs microseconds on either side.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from engine.records import CAUSES, LIMITS, EngineRecord, Lane, Limit, Probe

WIRE_VERSION: Final = 1

COLUMNS: Final = (
    "seq", "k_asked", "limit", "proposed", "drafted", "invalid", "accepted", "emitted", "context", "cause",
)  # fmt: skip
"""Column order of `PackedStep.columns`. `limit` and `cause` are indices into `LIMITS` and `CAUSES`."""

UNKNOWN: Final = -(2**31)
"""Stands for None in an int32 column (`proposed` under async scheduling)."""

LIMIT_CODE: Final[dict[str, int]] = {name: code for code, name in enumerate(LIMITS)}
CAUSE_CODE: Final[dict[str, int]] = {name: code for code, name in enumerate(CAUSES)}


class PackedStep(msgspec.Struct, frozen=True, array_like=True):
    """A `StepRecord` with its rows packed: `columns` holds `len(COLUMNS) * count` int32 values."""

    step: int
    ts: float
    duration_ms: float
    k_verify: int
    k_draft: int
    running: int
    waiting: int
    prefill_tokens: int
    probe: Probe | None
    """The probe under which the drafts verified here were asked for; `engine.probing` says which steps these are."""
    policy: int
    """Version of the state; `Announcement` says what of it has lapsed since."""
    limit_draft: Limit
    count: int
    columns: bytes


class ArrivedSequence(msgspec.Struct, frozen=True, array_like=True):
    """A sequence and its handle `seq`, unique within one boot of one engine; `request` is vLLM's request id."""

    seq: int
    request: str
    ts: float
    workload: str | None
    temperature: float
    prompt_tokens: int
    disable_speculation: bool
    lane: Lane
    hint_error: str | None = None


class FinishedSequence(msgspec.Struct, frozen=True, array_like=True):
    seq: int
    ts: float
    reason: str
    output_tokens: int


class Frame(msgspec.Struct, frozen=True, array_like=True, tag="frame"):
    """One numbered message. To be applied in order: sequences, step, finishes."""

    v: int
    engine: str
    boot: str
    frame: int
    sequences: list[ArrivedSequence]
    step: PackedStep | None
    finishes: list[FinishedSequence]


class Announcement(msgspec.Struct, frozen=True, array_like=True, tag="announcement"):
    """Who the engine is and what it serves now. `frame` is the last number it gave out, so a lost tail shows."""

    v: int
    record: EngineRecord
    boot: str
    frame: int
    sequences: list[ArrivedSequence]
    policy: int
    policy_error: str | None
    """Why the last policy message was refused; the one before it still holds."""
    frames_dropped: int
    reverted: float | None = None
    """Since when an unconfirmed raise is taken back, Unix seconds: `policy` is still the version of the raise."""
    orphaned: float | None = None
    """Since when adaptive's own K is left out because no station speaks, Unix seconds."""


class WireError(ValueError):
    """A message that is no frame: names what is wrong with it."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame | Announcement)


def encode(message: Frame | Announcement) -> bytes:
    return _encoder.encode(message)


def decode(payload: bytes) -> Frame | Announcement:
    """Decode and validate one message.

    Raises:
        WireError: not msgpack, not one of ours, another wire version, or columns that don't fit `count`.
    """
    try:
        message = _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(f"telemetry message of {len(payload)} bytes is not a frame: {error}") from error
    if message.v != WIRE_VERSION:
        raise WireError(f"telemetry wire version {message.v}, this station speaks {WIRE_VERSION}")
    if isinstance(message, Frame) and message.step is not None:
        expected = 4 * len(COLUMNS) * message.step.count
        if message.step.count < 0 or len(message.step.columns) != expected:
            raise WireError(
                f"frame {message.frame} of {message.engine}: {len(message.step.columns)} bytes of columns "
                f"for {message.step.count} rows, {expected} expected"
            )
    return message


def pack_columns(columns: Iterable[Sequence[int]]) -> bytes:
    """Pack `len(COLUMNS)` equally long integer columns into little-endian int32 bytes, column after column.

    `struct.pack` with all values as arguments takes less than half the time of an `array`.
    """
    return b"".join([struct.pack(f"<{len(column)}i", *column) for column in columns])
