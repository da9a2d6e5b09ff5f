"""What follows a flush, on the recorder's thread: step times are fitted anew, new cells are judged, old rows go."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable
from typing import Final

import duckdb

from engine.records import StateRecord
from store.alerts import last_remark, read_remarks
from store.database import Store
from store.figures import BucketKey
from store.judge.alerts import Alert, BucketView
from store.judge.judge import Judge
from store.judge.settings import JudgeSettings
from store.judging import Judging
from store.retention import Keep, Retention
from store.states import make_state
from store.step_models import step_models
from store.windows import LiveWindows

log = logging.getLogger(__name__)

FIT_SECONDS: Final = 10.0
"""How often step times are fitted anew: a rollup's cell."""


class Housekeeping:
    """`alerts` is what the judge thinks now, `levels` what it holds buckets against (of several engines, the one that
    has a baseline), `models` the step times of each engine: new objects each time, for readers on other threads."""

    def __init__(
        self,
        store: Store,
        windows: LiveWindows,
        keep: Keep | None = None,
        settings: JudgeSettings | None = None,
        tell: Callable[[str, str], None] = lambda kind, text: None,
    ) -> None:
        """`tell` takes the kind and text of what the judge remarks, e.g. that the traffic mix alone has changed."""
        self._reader = store.cursor()
        self._tell_remark = tell
        self._windows = windows
        self._retention = Retention(store.cursor(), store.path, keep)
        self._judging = Judging(store.cursor(), settings)
        self._fit_at = 0.0
        self.models = step_models(self._reader)
        self._remarked = last_remark(self._reader)
        self._failing: dict[str, str] = {}
        self.alerts: list[Alert] = []
        self.levels: dict[BucketKey, BucketView] = {}
        self._levelled = -1.0
        """Up to where the judge had come when `levels` were taken."""
        self._show()

    def after_flush(self, lock: contextlib.AbstractContextManager[object]) -> None:
        """`lock` guards the windows. What fails is tried again after the next flush: recording goes on."""
        self._try("fitting step times", lambda: self._fit(lock))
        self._try("judging", self._judge)
        self._try("removing what is old", lambda: self._retention.slice(time.time()))
        self._show()

    def tell(self, what: Callable[[Judge], object]) -> object:
        """Let the operator's word reach the judge, and keep it at once.

        Raises:
            UnknownAlert: there is no such alert.
            duckdb.Error: it can't be written.
        """
        answer = what(self._judging.judge)
        self._judging.save()
        self._show()
        return answer

    def state(self) -> StateRecord:
        """What the judge knows, for a recording that begins where it has come to: at most half a minute ago.

        Raises:
            duckdb.Error: it can't be read.
        """
        return make_state(self._judging, self._reader, max(time.time(), self._judging.up_to))

    def fit_soon(self) -> None:
        """Fit step times anew after the next flush: there is news for them. From any thread."""
        self._fit_at = 0.0

    def save(self) -> None:
        """Before the end: what the judge knows."""
        try:
            self._judging.save()
        except duckdb.Error as error:
            log.warning("what the judge knows could not be saved: %s", error)

    def _fit(self, lock: contextlib.AbstractContextManager[object]) -> None:
        if time.monotonic() < self._fit_at:
            return
        self._fit_at = time.monotonic() + FIT_SECONDS
        self.models = step_models(self._reader)
        with lock:
            self._windows.use_models(self.models)

    def _judge(self) -> None:
        self._judging.catch_up()
        for remark in read_remarks(self._reader, self._remarked, math.inf):
            self._remarked = remark.ts
            self._tell_remark(remark.kind, remark.text)

    def _try(self, what: str, job: Callable[[], object]) -> None:
        """What fails is told once, however often it is tried."""
        try:
            job()
        except Exception as error:  # a fault of ours in here must not end the recording either
            text = f"{what} waits: {next(iter(str(error).splitlines()), '') or type(error).__name__}"
            if self._failing.get(what) != text:
                log.warning("%s", text, exc_info=None if isinstance(error, duckdb.Error) else error)
            self._failing[what] = text
        else:
            if self._failing.pop(what, None) is not None:
                log.info("%s goes on", what)

    def _show(self) -> None:
        self.alerts = self._judging.judge.alerts()
        if self._judging.up_to != self._levelled:
            self._levelled = self._judging.up_to
            self._try("reading levels", self._level)

    def _level(self) -> None:
        views = sorted(self._judging.judge.views(), key=lambda view: view.baseline is not None)
        self.levels = {view.bucket: view for view in views}
