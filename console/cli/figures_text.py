"""A report as JSON, CSV or a table: the same figures, nothing computed here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

import msgspec

from store.figures import Figures, Report

NONE: Final = "—"
_CSV_LEFT_OUT: Final = frozenset({"window", "post_resume"})


def as_json(report: Report) -> str:
    return msgspec.json.encode(report).decode()


def as_csv(report: Report) -> str:
    """One line a bucket; histograms and per-position lists as JSON in their cell."""
    names = [name for name in Figures.__struct_fields__ if name not in _CSV_LEFT_OUT]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*names, "window_start", "window_end"])
    for bucket in report.buckets:
        cells = [_csv_cell(getattr(bucket, name)) for name in names]
        window = bucket.window
        writer.writerow([*cells, window.start if window else "", window.end if window else ""])
    return out.getvalue()


def as_table(report: Report) -> str:
    """Headline figures, one line a bucket, the pooled ones last; what is missing is told under it."""
    lines = bucket_table(report.buckets, report.total)
    if report.window is not None:
        span = report.window.end - report.window.start
        lines.append(f"\n{report.source}: {span:.0f} s of recording")
    if report.gaps or report.frames_lost:
        lines.append(f"{report.gaps} gaps, {report.frames_lost} frames lost")
    if report.quarantined:
        lines.append(f"{report.quarantined} impossible rows quarantined: in no figure")
    lines += report.notes
    return "\n".join(lines)


def bucket_table(buckets: Iterable[Figures], total: Figures | None) -> list[str]:
    header = (
        "workload",
        "context",
        "temp",
        "α",
        "±",
        "AL",
        "waste",
        "drafted",
        "K",
        "speedup",
        "tok/s",
        "rows",
        "seqs",
        "",
    )
    rows = [_cells(bucket) for bucket in buckets]
    if total is not None and len(rows) != 1:
        rows.append(("all", "", "", *_cells(total)[3:]))
    if not rows:
        return ["nothing recorded yet: send a request, e.g. with `specdeck demo`"]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return [_line(row, widths) for row in [header, *rows]]


def _cells(figures: Figures) -> tuple[str, ...]:
    interval = NONE
    if figures.alpha_low is not None and figures.alpha_high is not None:
        interval = f"{(figures.alpha_high - figures.alpha_low) / 2:.2f}"
    return (
        printable(figures.workload or "all"),
        figures.context or "all",
        figures.temperature or "all",
        rate(figures.alpha),
        interval,
        rate(figures.mean_acceptance_length),
        rate(figures.waste_ratio),
        rate(figures.drafted_share),
        k_mix(figures.k_histogram),
        rate(figures.speedup),
        NONE if figures.tokens_per_second is None else f"{figures.tokens_per_second:.1f}",
        NONE if figures.decode_rows is None else str(figures.decode_rows),
        NONE if figures.sequences is None else str(figures.sequences),
        "few" if figures.few else figures.state if figures.state != "ok" else "",
    )


def rate(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def printable(text: str, width: int = 24) -> str:
    """A tag as data: nothing in it moves the cursor or colours the terminal."""
    shown = "".join(char if char.isprintable() else "�" for char in text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def k_mix(histogram: dict[str, int]) -> str:
    """The K most rows were asked for, and its share when it was not the only one."""
    whole = sum(histogram.values())
    if not whole:
        return NONE
    k, count = max(histogram.items(), key=lambda item: item[1])
    return k if count == whole else f"{k} ({count / whole:.0%})"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    left = 3
    cells = [
        cell.ljust(width) if at < left else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _csv_cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        return msgspec.json.encode(value).decode()
    return value
