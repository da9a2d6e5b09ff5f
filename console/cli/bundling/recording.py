"""The records of a bundle and the figures of the same stretch: from a store, or from the station that has it open."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from console.cli import station as stations
from console.cli.bundling.gathered import Gathered
from console.cli.outcomes import Unreachable
from console.feed.protocol import ExportParams, ReportParams
from store.bundle.contents import TRACE
from store.database import Store
from store.export import export
from store.figures import Report
from store.report import report

_EXPORT_SECONDS: Final = 600.0
_REPORT_SECONDS: Final = 120.0
_TAGS_UNKNOWN: Final = "Workload tags of before this stretch could not be looked up: a log or a reason may name one."


def take_records(gathered: Gathered, store: Store, name: str, folder: Path, seconds: float) -> None:
    def exported() -> Path:
        raw = folder / "records.jsonl.zst"
        export(store.connection, raw, since=_since(gathered, seconds))
        return raw

    gathered.take("report.json", lambda: report(store.connection, source=name, window=seconds))
    gathered.take(TRACE, exported)
    tags = store.connection.execute("SELECT DISTINCT workload FROM buckets ORDER BY workload").fetchall()
    gathered.names.append({"workload": [tag for (tag,) in tags]})


def take_live_records(gathered: Gathered, folder: Path, seconds: float) -> None:
    def exported() -> Path:
        raw = folder / "records.jsonl.zst"
        params = ExportParams(path=str(raw), kind="jsonl", since=_since(gathered, seconds))
        stations.ask("export", str, params, seconds=_EXPORT_SECONDS)
        if not raw.exists():
            raise Unreachable(f"the station wrote them where this command can't see them: {raw}; choose another OUT")
        return raw

    gathered.take(
        "report.json", lambda: stations.ask("report", Report, ReportParams(window=seconds), seconds=_REPORT_SECONDS)
    )
    gathered.take(TRACE, exported)
    try:
        gathered.names.append(stations.ask("report", Report, ReportParams(by=["workload"]), seconds=_REPORT_SECONDS))
    except Exception as error:  # as in `take`
        gathered.doubts.append(f"{_TAGS_UNKNOWN} ({error})")


def _since(gathered: Gathered, seconds: float) -> float | None:
    """Where the stretch of the report begins, Unix seconds; None where there is no step at all."""
    report: Report | None = gathered.raw.get("report.json")
    if report is None:
        return time.time() - seconds
    return None if report.window is None else report.window.end - seconds
