"""Policy messages as bytes: msgpack, versioned, validated before anybody acts on them."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.policy.state import PolicyError, PolicyMessage, validate

POLICY_WIRE_VERSION: Final = 1


def encode_policy(message: PolicyMessage) -> bytes:
    return msgspec.msgpack.encode(message)


def decode_policy(payload: bytes) -> PolicyMessage:
    """Decode a policy message and validate its state. Its probe is left to `validate_probe`: a bad order for a
    measurement must not keep a policy from being applied.

    Raises:
        PolicyError: not a policy message, another wire version, or a state that fails `validate`.
    """
    try:
        message = msgspec.msgpack.decode(payload, type=PolicyMessage)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"not a policy message: {error}") from error
    if message.v != POLICY_WIRE_VERSION:
        raise PolicyError(f"policy wire version {message.v}, this engine speaks {POLICY_WIRE_VERSION}")
    validate(message.state)
    return message
