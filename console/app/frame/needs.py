"""What an action may need to be done, and why it can't be where that is missing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from console.app.live.demo import goes_on as demo_goes_on
from console.app.map.words import NONE_HERE, stale_words
from console.app.picture import Picture
from console.app.rehearsal.words import goes_on

Need = Literal[
    "station", "live", "replay", "write", "engine", "own_engine", "policy", "bucket", "workload", "unconfirmed",
    "map", "map_schedule", "rehearsal", "no_rehearsal", "files", "recording", "no_recording", "demo", "terminal",
]  # fmt: skip


def _needs_station(picture: Picture) -> str | None:
    if picture.link.state == "connected":
        return None
    return "the replay does not answer" if picture.replaying else "there is no connection to the station"


def _needs_live(picture: Picture) -> str | None:
    return "space holds a replay still and plays it on" if picture.replaying else None


def _needs_replay(picture: Picture) -> str | None:
    return None if picture.replay is not None else "only a replay has that"


def _needs_write(picture: Picture) -> str | None:
    if picture.replaying:
        return "a replay shows what was recorded and changes no engine; i asks what another policy would have done"
    if not picture.read_only:
        return None
    instead = "start `specdeck web` with --write" if picture.in_browser else "attach without --read-only"
    return f"this console is read-only; {instead}"


def _needs_engine(picture: Picture) -> str | None:
    return None if picture.serving else "no engine is serving yet; 7 shows how far it is"


def _needs_own_engine(picture: Picture) -> str | None:
    if any(engine.owned for engine in picture.engines):
        return None
    return "specdeck did not start this engine; restart it where it was started"


def _needs_policy(picture: Picture) -> str | None:
    if picture.snapshot is None or picture.snapshot.policy is not None:
        return None
    return "this station only observes; the engine's policy is set where that was started"


def _needs_bucket(picture: Picture) -> str | None:
    return None if picture.snapshot is not None and picture.snapshot.buckets else "there is no bucket yet"


def _needs_workload(picture: Picture) -> str | None:
    return None if picture.snapshot is not None and picture.snapshot.workloads else "there is no workload yet"


def _needs_unconfirmed(picture: Picture) -> str | None:
    waits = picture.snapshot is not None and picture.snapshot.unconfirmed is not None
    return None if waits else "no raise waits to be confirmed"


def _needs_map(picture: Picture) -> str | None:
    if picture.snapshot is not None and picture.snapshot.map is not None:
        return None
    return NONE_HERE if picture.replaying else "there is no operating map yet; r rehearses one"


def _needs_map_schedule(picture: Picture) -> str | None:
    summary = picture.snapshot.map if picture.snapshot is not None else None
    if summary is None or summary.schedule is None:
        return "the map proposes no schedule: too little was measured; r measures anew"
    if summary.stale:
        return f"the map is stale, {stale_words(summary.stale)}; r measures anew"
    return None


def _needs_rehearsal(picture: Picture) -> str | None:
    on = picture.snapshot is not None and goes_on(picture.snapshot.rehearsal)
    return None if on else "no rehearsal goes on"


def _needs_no_rehearsal(picture: Picture) -> str | None:
    on = picture.snapshot is not None and goes_on(picture.snapshot.rehearsal)
    return "a rehearsal goes on already; b breaks it off" if on else None


def _needs_files(picture: Picture) -> str | None:
    if not picture.read_only:
        return None
    return "this console is read-only, and that writes a file; `specdeck export` does it from a shell"


def _needs_recording(picture: Picture) -> str | None:
    view = picture.snapshot.recording if picture.snapshot is not None else None
    if view is not None and view.state == "writing":
        return "the recording is being written"
    return None if view is not None and view.state == "on" else "no recording goes on; r begins one"


def _needs_no_recording(picture: Picture) -> str | None:
    view = picture.snapshot.recording if picture.snapshot is not None else None
    on = view is not None and view.state != "written"
    return "a recording goes on already; b ends it and writes its file" if on else None


def _needs_demo(picture: Picture) -> str | None:
    """It goes on and can be ended, or it may begin."""
    snapshot = picture.snapshot
    if snapshot is not None and demo_goes_on(snapshot.demo):
        return None
    if snapshot is not None and snapshot.buckets:
        return "there is traffic here already; the demo's is for a console that has nothing to show"
    if snapshot is not None and snapshot.policy is None:
        return "this station only observes; send requests to the vLLM that it looks at"
    return _needs_engine(picture)


def _needs_terminal(picture: Picture) -> str | None:
    return "only from a console in a terminal; this one is in a browser already" if picture.in_browser else None


CHECKS: Final[Mapping[Need, Callable[[Picture], str | None]]] = {
    "station": _needs_station,
    "live": _needs_live,
    "replay": _needs_replay,
    "write": _needs_write,
    "engine": _needs_engine,
    "own_engine": _needs_own_engine,
    "policy": _needs_policy,
    "bucket": _needs_bucket,
    "workload": _needs_workload,
    "unconfirmed": _needs_unconfirmed,
    "map": _needs_map,
    "map_schedule": _needs_map_schedule,
    "rehearsal": _needs_rehearsal,
    "no_rehearsal": _needs_no_rehearsal,
    "files": _needs_files,
    "recording": _needs_recording,
    "no_recording": _needs_no_recording,
    "demo": _needs_demo,
    "terminal": _needs_terminal,
}
"""Each says why not, with the remedy; None where the need is met."""
