"""The words of `specdeck status`, from the same snapshot that consoles show."""

from __future__ import annotations

from typing import Any

from console.cli.leftovers import living
from console.feed.messages import EngineView, Snapshot
from console.feed.protocol import ProcessesResult
from console.feed.vanilla_lane import vanilla_lane
from engine.policy import describe as describe_mode


def status_object(snapshot: Snapshot, processes: ProcessesResult) -> dict[str, Any]:
    """What `--json` prints: times as Unix seconds, ages in seconds."""
    return {
        "running": True,
        "station": snapshot.station,
        "started": snapshot.started,
        "processes": processes.processes,
        "sockets": processes.sockets,
        "store": snapshot.store,
        "loss": snapshot.loss,
        "gateway": snapshot.gateway,
        "vanilla_lane": vanilla_lane(snapshot),
        "engines": snapshot.engines,
        "policy_version": snapshot.policy_version,
        "policy": snapshot.policy,
        "cap": snapshot.cap,
        "fallback": snapshot.fallback,
        "tokens_per_second": snapshot.tokens_per_second,
        "alerts": snapshot.alerts,
        "engine_log": processes.engine_log,
    }


def describe(snapshot: Snapshot, processes: ProcessesResult) -> str:
    lines = [_process_line(view.role, view.pid, view.detail) for view in processes.processes]
    lines.append("")
    for engine in snapshot.engines:
        lines += _engine_lines(engine)
    lines.append(_policy_line(snapshot))
    lane = vanilla_lane(snapshot)
    if lane is not None:
        lines.append(f"vanilla lane: {lane.text}")
    store = snapshot.store
    recording = "recording" if store.recording else str(store.error)
    lines.append(f"store      {store.path}: {store.rows} rows, {store.bytes / 1e6:.1f} MB, {recording}")
    loss = snapshot.loss
    lines.append(
        f"losses     {loss.frames_lost} frames in {loss.gaps} gaps, {loss.quarantined} rows quarantined, "
        f"{loss.broken_messages} broken messages"
    )
    if processes.engine_log:
        lines.append(f"engine log {processes.engine_log}")
    lines.append(f"sockets    {processes.sockets.get('telemetry', '')} (SPECDECK_SOCKET of an engine of your own)")
    lines += [f"alert      {alert.severity}: {alert.text}" for alert in snapshot.alerts if alert.state == "firing"]
    return "\n".join(lines)


def leftovers_text() -> str:
    """What to say when no station runs: nothing at all, or what a killed one left serving."""
    left = living()
    if not left:
        return "no station is running here: start one with `specdeck`, `specdeck demo` or `specdeck serve`"
    names = ", ".join(f"{role} (pid {pid})" for role, pid in left.items())
    return f"no station is running, but {names} still serve: `specdeck` adopts them, `specdeck stop` ends them"


def _policy_line(snapshot: Snapshot) -> str:
    if snapshot.policy is None:
        return "policy     unknown: this station only observes"
    cap = "" if snapshot.cap is None else f", cap {snapshot.cap}"
    fallback = ", fallback" if snapshot.fallback else ""
    return f"policy     version {snapshot.policy_version}: {describe_mode(snapshot.policy)}{cap}{fallback}"


def _process_line(role: str, pid: int | None, detail: str) -> str:
    return f"{role:<10} {'pid ' + str(pid) if pid else 'not running':<12} {detail}".rstrip()


def _engine_lines(engine: EngineView) -> list[str]:
    age = "never heard" if engine.last_frame_age is None else f"heard {engine.last_frame_age:.1f} s ago"
    owner = "" if engine.owned else " (not started by specdeck)"
    load = f"running {_number(engine.running)}, waiting {_number(engine.waiting)}"
    head = f"engine {engine.engine:<3} {engine.state}{owner}, {age}, {load}"
    lines = [f"{head}: {engine.detail}" if engine.detail else head]
    if engine.target:
        lines.append(
            f"           {engine.target} · {engine.drafter} · {engine.method} · vLLM {engine.vllm} {engine.device}"
        )
    running = [phase for phase in engine.phases if phase.state == "running"]
    if engine.state != "serving" and running:
        lines.append(
            "           starting: " + ", ".join(f"{phase.name} {phase.seconds or 0:.0f} s" for phase in running)
        )
    if engine.configured is None:
        return [*lines, "           policy and executed K unknown"]
    configured = describe_mode(engine.configured)
    resolved = describe_mode(engine.resolved) if engine.resolved else "—"
    executed = "—" if engine.executed_k is None else f"K {engine.executed_k} ({engine.executed_limit})"
    why = f": {engine.mismatch}" if engine.mismatch else ""
    lines.append(f"           configured {configured} · resolved {resolved} · executed {executed}{why}")
    lines.append(f"           policy sent {engine.policy_sent}, applied {engine.policy_applied}")
    return lines


def _number(count: int | None) -> str:
    return "—" if count is None else str(count)
