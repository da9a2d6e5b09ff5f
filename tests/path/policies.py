"""Setting a policy on a served engine, and waiting no longer than it takes."""

from __future__ import annotations

from console.feed.protocol import PolicyResult, PolicySet
from tests.path.served import Served, until


def set_policy(served: Served, wanted: PolicySet) -> PolicyResult:
    """Make it the policy, and wait until the engine's own stamp says that it is applied."""
    made = served.ask("policy_set", wanted, PolicyResult)
    # An idle engine would say so with its next announcement, up to 10 s later: a step says it at once.
    served.complete({"prompt": "x", "max_tokens": 2, "vllm_xargs": {"workload": "setting"}})
    until(f"policy {made.version} applied", lambda: _applied(served, made.version), 30.0)
    return made


def _applied(served: Served, version: int) -> bool:
    return any((engine.policy_applied or 0) >= version for engine in served.snapshot().engines)
