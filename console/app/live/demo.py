"""The demo's traffic, for a console that has nothing to show yet: offered, begun, watched and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from console.app.drawing import numbers
from console.app.drawing.spans import Line, Part, clean, wrap
from console.app.frame.change import Change
from console.feed.client import FeedError
from console.feed.messages import DemoTrafficView
from console.feed.protocol import DemoStart

if TYPE_CHECKING:
    import msgspec

    from console.app.application import SpecdeckApp
    from console.feed.protocol import Method

SECONDS: Final = 180.0
ANSWER_SECONDS: Final = 20.0
"""A process is started, or ended, before the station answers."""
_GOING_ON: Final = ("waiting", "running")

START: Final = Change(
    title="Demo traffic",
    before="nothing was asked of this engine yet",
    after=f"about one request every two seconds, for {SECONDS / 60:.0f} min",
    effects=[
        "Four kinds of requests with specdeck's own texts, from this machine, under the workloads demo-code, "
        "demo-repeat, demo-chat and demo-creative.",
        "They are recorded like any others.",
    ],
    undo="d ends it; what was recorded stays",
)


def goes_on(view: DemoTrafficView | None) -> bool:
    return view is not None and view.state in _GOING_ON


class DemoDesk:
    """What the key does. It assumes what its action needs: a station that answers."""

    def __init__(self, app: SpecdeckApp) -> None:
        self._app = app

    def toggle(self) -> None:
        """Offer it, or end the one that goes on."""
        from console.app.frame.dialogs import ConfirmDialog

        snapshot = self._app.picture.snapshot
        if snapshot is not None and goes_on(snapshot.demo):
            self._ask("demo_stop", None, "the demo's traffic has ended")
            return

        def confirmed(yes: bool | None) -> None:
            if yes:
                self._ask("demo_start", DemoStart(seconds=SECONDS), "the demo's traffic begins")

        self._app.push_screen(ConfirmDialog(START), confirmed)

    def _ask(self, method: Method, params: msgspec.Struct | None, done: str) -> None:
        async def ask() -> None:
            try:
                await self._app.feed.request(method, params, object, ANSWER_SECONDS)
            except FeedError as error:
                old = error.code == "unknown_method"
                why = (
                    "this station is older than the demo's traffic; `specdeck demo` sends it" if old else error.message
                )
                self._app.tell(f"demo traffic: {why}", severity="warning")
            else:
                self._app.tell(done)

        self._app.run_worker(ask(), group="act", exit_on_error=False)


def demo_part(view: DemoTrafficView | None) -> Part:
    """What the status line says while it goes on: `demo 2:31`."""
    if view is None or not goes_on(view):
        return Part(())
    left = "" if view.seconds_left is None else f" {numbers.countdown(view.seconds_left)}"
    return Part((("demo", "accent"), (left, "text")), 5, (("demo", "accent"),), short_spare=3)


def demo_lines(view: DemoTrafficView, width: int) -> list[Line]:
    """How it stands, where there is room for sentences."""
    if view.state == "failed":
        text = f"The demo's traffic failed: {clean(view.note)}"
        return [((f"  {part}", "warn"),) for part in wrap(text, width - 2)]
    if not goes_on(view):
        said = f"The demo's traffic is {view.state}: {view.done} of {view.sent} requests were answered."
        return [((f"  {said}", "dim"),)]
    if view.state == "waiting":
        what = "waits for the engine and its calibration"
    else:
        left = "" if view.seconds_left is None else f", {numbers.countdown(view.seconds_left)} left"
        what = f"{numbers.many(view.sent, 'request')} sent, {view.done} answered{left}"
    lines: list[Line] = [(("  ◐ ", "accent"), (f"demo traffic: {what}  ", "text"), ("d", "key"), (" ends it", "dim"))]
    lines += [((f"    {part}", "warn"),) for part in wrap(clean(view.note), width - 4)]
    return lines
