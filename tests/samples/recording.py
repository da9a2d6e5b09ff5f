"""One store of a real run, in places of its own, and what became of it as a trace: from a new store to its end."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from store.export import export
from store.source import open_source
from tests.path.served import Served, until

SAMPLES: Final = Path(__file__).parents[2] / "sample_traces"
_CALIBRATED_SECONDS: Final = 120.0


class Recording:
    """The engines of one story, one after the other, all recorded in one store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = directory / "run.duckdb"
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f} s  {text}", file=sys.stderr, flush=True)

    @contextmanager
    def serving(self, *options: str, policy: str, calibrated: bool = False) -> Iterator[Served]:
        """`specdeck serve` with these options, calibrated first where that is asked for, ended on leaving.

        Raises:
            AssertionError: it does not serve; with the ends of its logs.
        """
        store = ("--store", str(self.store))
        served = Served(self.directory, *store, *options, policy=policy, calibrated=calibrated)
        try:
            served.wait_serving()
            if calibrated:
                until("calibrated", lambda: _calibrated(served), _CALIBRATED_SECONDS)
            self.say("serving" + (", calibrated" if calibrated else ""))
            yield served
        finally:
            served.stop()


@contextmanager
def recording(out: Path) -> Iterator[Recording]:
    """What is recorded meanwhile becomes the trace `out`, in place of an older one. If it ends in an error, that one
    stays, and the new one is put aside to be looked at."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:  # short: it holds sockets
        recorded = Recording(Path(directory))
        try:
            yield recorded
        except AssertionError:
            recorded.say(f"failed; see {_export(recorded.store, Path(tempfile.gettempdir()) / out.name)}")
            raise
        _export(recorded.store, out)
        recorded.say(f"{out.name}: {out.stat().st_size / 1e6:.2f} MB")


def _export(recorded: Path, out: Path) -> Path:
    new = out.with_name(f".{out.name}")
    new.unlink(missing_ok=True)
    with open_source(recorded) as store:
        export(store.connection, new)
    return new.replace(out)


def _calibrated(served: Served) -> bool:
    view = served.snapshot().calibration
    return view is None or view.state in ("done", "skipped")
