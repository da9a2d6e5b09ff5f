"""How figures of rehearsals and maps are written: numbers with their intervals, aligned and Markdown tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from console.cli.figures_text import NONE, printable, rate
from store.operating_map.fingerprint import Fingerprint
from store.rehearsal.plan import Deadline
from store.rehearsal.result_records import Drafting, Estimate

WIDTH: Final = 80

Rows = Sequence[Sequence[str]]


def seconds(value: float | None) -> str:
    """`45 ms`, `1.2 s`."""
    if value is None:
        return NONE
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"


def bounds(value: float | None, low: float | None, high: float | None) -> str:
    """`1.16 [1.10, 1.22]`."""
    if value is None:
        return NONE
    return rate(value) if low is None or high is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def ratio(one: Estimate | None) -> str:
    return NONE if one is None else bounds(one.value, one.low, one.high)


def short_ratio(one: Estimate | None) -> str:
    """`1.16 ±0.06`: how far the interval goes up, its longer side, for narrow places."""
    if one is None:
        return NONE
    return rate(one.value) + ("" if one.low is None or one.high is None else f" ±{one.high - one.value:.2f}")


def amount(one: Estimate | None) -> str:
    """`103 ±4`: tokens/s and the like. The lower end may be cut at 0, the upper never is."""
    if one is None:
        return NONE
    digits = 1 if one.value < 100 else 0
    half = "" if one.low is None or one.high is None else f" ±{one.high - one.value:.{digits}f}"
    return f"{one.value:.{digits}f}{half}"


def k_shares(found: Drafting | None) -> str:
    """Shares of the decode rows by the K that they were asked for: `4 62%, 1 38%`."""
    if found is None:
        return NONE
    whole = sum(found.k_mix.values())
    shown = sorted(found.k_mix.items(), key=lambda item: -item[1])[:3]
    if len(found.k_mix) == 1:
        return shown[0][0]
    return ", ".join(f"{k} {count / whole:.0%}" for k, count in shown) + (" …" if len(found.k_mix) > 3 else "")


def deadline(of: Deadline) -> str:
    named = (("E2E", of.e2e), ("TTFT", of.ttft), ("TPOT", of.tpot))
    return ", ".join(f"{name} {seconds(limit)}" for name, limit in named if limit is not None) or "none"


def engine_words(of: Fingerprint) -> list[tuple[str, str]]:
    """What the figures are of, name by name."""
    words = [
        ("machine", of.hardware),
        ("model", of.model_version),
        ("vLLM", of.vllm),
        ("data/tensor/pipeline parallel", of.topology),
        ("largest K", str(of.max_k)),
        ("largest batch", str(of.max_num_seqs)),
    ]
    if of.max_model_len is not None:
        words.append(("longest context", str(of.max_model_len)))
    if of.graph_mode is not None:
        words.append(("graph mode", of.graph_mode))
    words.append(("async scheduling", "on" if of.async_scheduling else "off"))
    return [(name, printable(value, 200)) for name, value in words]


def aligned(header: Sequence[str], rows: Rows, *, indent: int = 2) -> list[str]:
    """The first column to the left, figures to the right."""
    widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
    return [
        (
            " " * indent
            + "  ".join(
                cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(_zip(row, widths))
            )
        ).rstrip()
        for row in (header, *rows)
    ]


def filled(paragraphs: Iterable[str], width: int, indent: str = "") -> list[str]:
    """Each broken into lines, those after its first indented a little more."""
    return [
        line
        for text in paragraphs
        for line in textwrap.wrap(
            text, width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
        )
    ]


def in_blocks(header: Sequence[str], rows: Rows, width: int) -> list[str]:
    """The same in blocks of columns under each other where the table is wider than `width`; the first column again."""
    fits = len(header)
    while fits > 2 and max(map(len, aligned(header[:fits], [row[:fits] for row in rows]))) > width:
        fits -= 1
    lines = aligned(header[:fits], [row[:fits] for row in rows])
    if fits == len(header):
        return lines
    left = [row[0] for row in rows]
    rest = [[name, *row[fits:]] for name, row in zip(left, rows, strict=True)]
    return [*lines, "", *in_blocks([header[0], *header[fits:]], rest, width)]


def markdown_table(header: Sequence[str], rows: Rows) -> list[str]:
    ruler = ["---", *("---:" for _ in header[1:])]
    return [f"| {' | '.join(escaped(row))} |" for row in (header, ruler, *rows)]


def escaped(cells: Iterable[str]) -> list[str]:
    """Names are data: none ends a cell, or makes a link or a tag."""
    return [
        "".join(f"\\{char}" if char in "|`<[*_\\" and not _plain(cell) else char for char in cell) for cell in cells
    ]


def _plain(cell: str) -> bool:
    """A figure of ours, whose brackets are harmless."""
    return all(char in "0123456789.,[]±–-→×%: msbkK" for char in cell)


def _zip(row: Sequence[str], widths: Sequence[int]) -> Iterable[tuple[str, int]]:
    return zip(row, widths, strict=True)
