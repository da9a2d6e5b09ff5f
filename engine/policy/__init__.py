"""The policy as versioned state: what the station sends whole, what the scheduler reads one attribute of a step.

A draft length is decided by terms (design §9): a base for the mode, then whatever lowers it. A sequence's K is the
minimum; the term that gave it is its `limit`, ties going to the first in `LIMITS`.
"""

from engine.policy.lapse import LapsingPolicy, Standing, standing
from engine.policy.resolver import DraftLength, Resolver, base_k, resolved_mode
from engine.policy.state import (
    Base,
    PolicyError,
    PolicyMessage,
    PolicyState,
    ProbeOrder,
    WorkloadPolicy,
    policy_diff,
    validate,
    validate_probe,
)
from engine.policy.wire import POLICY_WIRE_VERSION, decode_policy, encode_policy
from engine.policy.words import describe, parse_mode, readable

__all__ = [
    "POLICY_WIRE_VERSION",
    "Base",
    "DraftLength",
    "LapsingPolicy",
    "PolicyError",
    "PolicyMessage",
    "PolicyState",
    "ProbeOrder",
    "Resolver",
    "Standing",
    "WorkloadPolicy",
    "base_k",
    "decode_policy",
    "describe",
    "encode_policy",
    "parse_mode",
    "policy_diff",
    "readable",
    "resolved_mode",
    "standing",
    "validate",
    "validate_probe",
]
