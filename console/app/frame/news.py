"""What came in while the picture was held: rows, alerts that began to fire, and the gravest of those."""

from __future__ import annotations

from dataclasses import dataclass

from console.app.drawing import numbers
from console.feed.messages import AlertView, Snapshot
from console.notices.watch import identity


@dataclass(frozen=True)
class News:
    """`rows`: recorded since; None of a station that only observes, which has none. `alerts`: began to fire since,
    whether or not they are over."""

    rows: int | None
    alerts: int
    critical: AlertView | None = None
    """The newest critical one that still fires."""


class Held:
    """A picture that is held, and the newest one behind it."""

    def __init__(self, held: Snapshot) -> None:
        self._rows = held.store.rows
        self._known = {identity(alert) for alert in _firing(held)}
        self._began: set[tuple[object, ...]] = set()
        self.newest: Snapshot | None = None

    def see(self, newest: Snapshot) -> News:
        """What it tells that the held picture doesn't."""
        self.newest = newest
        began = [alert for alert in _firing(newest) if identity(alert) not in self._known]
        self._began.update(map(identity, began))
        grave = [alert for alert in began if alert.severity == "critical"]
        return News(
            rows=max(0, newest.store.rows - self._rows) if newest.policy is not None else None,
            alerts=len(self._began),
            critical=max(grave, key=lambda alert: alert.started, default=None),
        )


def news_words(news: News | None) -> str:
    """`+1,240 rows · +3 alerts`; empty where nothing came."""
    if news is None:
        return ""
    parts = [f"+{news.rows:,} rows"] if news.rows else []
    if news.alerts:
        parts.append(f"+{numbers.many(news.alerts, 'alert')}")
    return " · ".join(parts)


def news_mark(news: News | None) -> str:
    """The same in few cells: `+1.2k +3▲`."""
    if news is None:
        return ""
    parts = [f"+{numbers.count(news.rows)}"] if news.rows else []
    if news.alerts:
        parts.append(f"+{news.alerts}▲")
    return " ".join(parts)


def _firing(snapshot: Snapshot) -> list[AlertView]:
    return [alert for alert in snapshot.alerts if alert.state == "firing"]
