"""Which screens there are, and how one gets from one to another: by its key, or from what one of them shows.

All but the first are imported when they are gone to.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import ClassVar

from textual.screen import Screen

from console.app.frame.outcome import OpenTrace
from console.app.live.screen import LiveScreen
from console.app.outward import Outward
from console.app.replay.desk import ReplayDesk
from console.feed.messages import AlertView
from store.figures import BucketKey


def _bucket_screen() -> Screen[None]:
    from console.app.bucket.screen import BucketScreen

    return BucketScreen()


def _policy_screen() -> Screen[None]:
    from console.app.policy.screen import PolicyScreen

    return PolicyScreen()


def _alerts_screen() -> Screen[None]:
    from console.app.alerts.screen import AlertsScreen

    return AlertsScreen()


def _map_screen() -> Screen[None]:
    from console.app.map.screen import MapScreen

    return MapScreen()


def _traces_screen() -> Screen[None]:
    from console.app.traces.screen import TracesScreen

    return TracesScreen()


def _engine_screen() -> Screen[None]:
    from console.app.engine.screen import EngineScreen

    return EngineScreen()


class Going(Outward, inherit_bindings=False):
    """Part of `SpecdeckApp`."""

    DEFAULT_MODE = "live"
    MODES: ClassVar = {
        "live": LiveScreen,
        "bucket": _bucket_screen,
        "policy": _policy_screen,
        "alerts": _alerts_screen,
        "map": _map_screen,
        "traces": _traces_screen,
        "engine": _engine_screen,
    }

    replay_desk: ReplayDesk
    bucket: BucketKey | None
    """The bucket that was looked at last; the screens hand it on."""

    def show_bucket(self, key: BucketKey | None, ts: float | None = None) -> None:
        """The Bucket screen of a bucket, its cursor on a moment; the Live screen where no bucket is meant."""
        if key is None:
            self.action_live()
            return
        from console.app.bucket.screen import BucketScreen

        self.bucket = key
        self.switch_mode("bucket")
        screen = self.screen
        if isinstance(screen, BucketScreen) and not screen.look_at(ts):
            self.tell("That moment is more than 6 h ago, further back than series are held.", severity="warning")

    def go_to_moment(self, key: BucketKey | None, ts: float) -> None:
        """As `show_bucket`; a replay goes to the moment itself."""
        replaying = self.picture.replay is not None
        if replaying:
            self.replay_desk.seek(ts)
        self.show_bucket(key, None if replaying else ts)

    def show_alert(self, alert: AlertView) -> None:
        """Where an alert can be looked into: in its bucket at its moment, else on the Alerts screen."""
        if alert.bucket is not None:
            self.go_to_moment(alert.bucket, alert.started)
        else:
            self.action_alerts()

    def show_change(self, ts: float) -> None:
        """The Policy screen, its history at what was done at a moment."""
        from console.app.policy.screen import PolicyScreen

        self.switch_mode("policy")
        screen = self.screen
        if isinstance(screen, PolicyScreen):
            screen.go_to(ts)

    def open_trace(self, path: str) -> None:
        """End here and have the command that opened this console show a trace."""
        if self.is_web:
            command = f"specdeck web --replay {shlex.quote(path)}"
            self.tell(f"A browser keeps to its console: `{command}` shows this trace in one.")
            return
        self.exit(OpenTrace(Path(path)))

    def action_live(self) -> None:
        self.switch_mode("live")
        screen = self.screen
        if isinstance(screen, LiveScreen) and self.bucket is not None:
            screen.come_to(self.bucket)

    def action_bucket(self) -> None:
        self.switch_mode("bucket")

    def action_policy(self) -> None:
        self.switch_mode("policy")

    def action_alerts(self) -> None:
        self.switch_mode("alerts")

    def action_map(self) -> None:
        self.switch_mode("map")

    def action_traces(self) -> None:
        self.switch_mode("traces")

    def action_engine(self) -> None:
        self.switch_mode("engine")
