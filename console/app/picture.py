"""What the screens draw from: the last snapshot, and how the console stands to the station."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from console.app.frame.news import News
from console.app.frame.outcome import Intent
from console.app.replay.clock import Expected, shown_view
from console.feed.messages import AlertView, BucketView, EngineView, ReplayView, Snapshot
from store.figures import BucketKey

LinkState = Literal["connecting", "connected", "lost"]


@dataclass(frozen=True)
class Link:
    """The connection to the station. `since`: Unix seconds of the last change, or of the last snapshot when lost."""

    state: LinkState
    since: float
    reason: str = ""
    action: str = ""
    """What the command that started this console does about it."""


@dataclass(frozen=True)
class Picture:
    """Everything a view needs. `now` is the wall clock in Unix seconds, frozen while paused only in the snapshot.

    What tells how old something recorded is, or what time it is, counts from `moment`.
    """

    link: Link
    now: float
    snapshot: Snapshot | None = None
    read_only: bool = False
    paused_since: float | None = None
    news: News | None = None
    """While it is paused: what came in since."""
    window: str = ""
    """The window that was fixed for the bucket table, e.g. `1 h`; empty: each bucket chooses its own."""
    compared: BucketKey | None = None
    """The bucket that the next one is to be compared with."""
    intent: Intent = "run"
    expected: Expected | None = None
    """Of a replay: what was asked of it that its last snapshot does not show yet."""
    in_browser: bool = False
    """It is drawn in a browser: what reads or writes files does so on the machine of the server."""
    loop_from: float | None = None
    """Of a replay: where a loop begins whose end is not marked yet."""
    exporting: str = ""
    """How far an export is, while one goes on."""

    @property
    def replaying(self) -> bool:
        """It shows a replay, or waits for one."""
        return self.snapshot.source == "replay" if self.snapshot is not None else self.intent == "replay"

    @property
    def replay(self) -> ReplayView | None:
        """Where a replay stands, with what the keys have asked of it; None of a station."""
        view = self.snapshot.replay if self.snapshot is not None else None
        return None if view is None else shown_view(view, self.expected)

    @property
    def moment(self) -> float:
        """The time that is shown, Unix seconds: of a replay its virtual clock, else the wall clock."""
        if self.snapshot is None or not self.replaying:
            return self.now
        return self.snapshot.ts if self.expected is None or self.expected.ts is None else self.expected.ts

    @property
    def engines(self) -> list[EngineView]:
        return self.snapshot.engines if self.snapshot is not None else []

    @property
    def serving(self) -> list[EngineView]:
        return [engine for engine in self.engines if engine.state == "serving"]

    @property
    def firing(self) -> list[AlertView]:
        """Firing alerts, the gravest first and of those the newest."""
        alerts = self.snapshot.alerts if self.snapshot is not None else []
        order = {"critical": 0, "warn": 1, "info": 2}
        return sorted(
            (alert for alert in alerts if alert.state == "firing"),
            key=lambda alert: (order[alert.severity], -alert.started),
        )

    @property
    def base_url(self) -> str | None:
        """The public URL of the gateway without the `/v1`, None before there is one."""
        gateway = self.snapshot.gateway if self.snapshot is not None else None
        return gateway.url.rstrip("/").removesuffix("/v1") if gateway is not None else None

    def bucket(self, key: BucketKey | None) -> BucketView | None:
        if self.snapshot is None or key is None:
            return None
        return next((bucket for bucket in self.snapshot.buckets if bucket.key == key), None)


def pending_policy(engine: EngineView) -> bool:
    """The engine has not yet applied the policy it was sent."""
    return engine.policy_sent is not None and engine.policy_applied != engine.policy_sent
