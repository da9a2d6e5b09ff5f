"""What was asked of an engine, what it executed, and by which numbers K was changed."""

from __future__ import annotations

from engine.records import LIMITS
from store.figure_sql import literals


def executed(engine: str, end: float, steps: int = 20) -> str:
    """The last `steps` steps of an engine: the K asked of the drafter, and the policy term that set it."""
    return f"""SELECT s.number AS step, s.ts, s.k_draft,
  {literals.names(LIMITS, "s.limit_draft")} AS set_by,
  s.running, s.waiting, s.policy
FROM steps s JOIN engines e ON s.engine_run = e.id
WHERE e.engine = {literals.text(engine)}
  AND s.ts <= {literals.number(end)}
ORDER BY s.id DESC LIMIT {steps}"""


def runs(engine: str) -> str:
    """Every start of an engine, with what it said of itself."""
    return f"""SELECT ts, vllm, target, drafter, method, max_k, batch_k, max_num_seqs,
  data_parallel_size, device, configured, resolved
FROM engines WHERE engine = {literals.text(engine)}
ORDER BY ts DESC"""


def changes(end: float, many: int = 10) -> str:
    """The last changes of the policy, with what they replaced."""
    return f"""SELECT ts, actor, action, workload, before, after, policy, why
FROM controls WHERE ts <= {literals.number(end)}
ORDER BY ts DESC LIMIT {many}"""


def decided(workload: str, end: float, many: int = 5) -> str:
    """The last decisions about a workload, with the numbers they were made by."""
    return f"""SELECT ts, action, before, after, numbers FROM controls
WHERE workload = {literals.text(workload)}
  AND numbers IS NOT NULL AND ts <= {literals.number(end)}
ORDER BY ts DESC LIMIT {many}"""


def drill(end: float) -> str:
    """The last drill, as it was recorded."""
    return f"""SELECT ts, actor, why, numbers AS certificate FROM controls
WHERE action = 'drill' AND numbers IS NOT NULL
  AND ts <= {literals.number(end)}
ORDER BY ts DESC LIMIT 1"""


def change(policy: int) -> str:
    """What one version of the policy changed."""
    return f"""SELECT ts, actor, action, workload, before, after, why, numbers
FROM controls WHERE policy = {policy} ORDER BY ts"""
