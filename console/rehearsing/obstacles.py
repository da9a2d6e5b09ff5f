"""What of the present policy would hold where a rehearsal wants its schedule to hold. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from console.feed.messages import EngineView, Snapshot


def obstacles(snapshot: Snapshot, engine: EngineView, highest_k: int, tag: str) -> list[str]:
    """Why a schedule up to `highest_k` could not be shown to hold on requests of workload `tag`; empty: it can."""
    return [
        *_of_engine(engine), *no_loan(snapshot), *of_policy(snapshot, highest_k), *of_workload(snapshot, tag),
    ]  # fmt: skip


def no_loan(snapshot: Snapshot) -> Iterator[str]:
    """Why the policy of a station could not be borrowed and given back just as it was."""
    if snapshot.unconfirmed is not None:
        yield "a change of the policy waits to be confirmed: `specdeck policy confirm` or `specdeck policy undo` first"
    for view in snapshot.engines:
        if not view.owned and view.configured != snapshot.policy:
            yield (
                f"engine {view.engine} still has the policy that it came with, and any change here would end that for "
                "good: set a policy for all first"
            )


def of_topology(engine: EngineView) -> Iterator[str]:
    """Why no K at all could be put in force."""
    if engine.data_parallel_size is not None and engine.data_parallel_size > 1:
        yield f"engine {engine.engine} runs data parallel: its batch K is never moved, so no schedule can be executed"


def _of_engine(engine: EngineView) -> Iterator[str]:
    yield from of_topology(engine)
    if engine.batch_k == "fixed":
        yield (
            f"engine {engine.engine} drafts its maximum whatever K is ({engine.method}): sequences are only trimmed, "
            "and its steps do not show it; `specdeck drill` tries the ways out on single requests"
        )


def of_policy(snapshot: Snapshot, highest_k: int) -> Iterator[str]:
    """What of the policy would keep K below `highest_k`, or must not be overridden."""
    if snapshot.fallback:
        yield "the operator's fallback is on: K is 0 for everybody, whatever the schedule says"
    if snapshot.policy is not None and snapshot.policy.mode == "off":
        yield "the mode is off: the rehearsal would turn speculation on for everybody; set another mode first"
    if snapshot.cap is not None and snapshot.cap < highest_k:
        yield f"the operator's cap is {snapshot.cap}: K {highest_k} of the schedule would not be executed"
    if snapshot.calibration is not None and snapshot.calibration.state == "running":
        yield f"engine {snapshot.calibration.engine} is being calibrated: try again in a minute"


def of_workload(snapshot: Snapshot, tag: str) -> Iterator[str]:
    """What holds for this workload alone."""
    for workload in snapshot.workloads:
        if workload.name != tag:
            continue
        if workload.lane == "vanilla":
            yield f"workload {tag} is in the vanilla lane: `specdeck policy set --lane {tag}=speculative`"
        if workload.fallback:
            yield f"workload {tag} is in automatic fallback: it recovers by itself, try again later"
