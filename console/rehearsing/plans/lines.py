"""Rows of a text file with the line on which each begins: JSON objects, one a line, or CSV under a heading."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, TypeVar

import msgspec

from console.rehearsing.plans.errors import PlanError, named, nearest, shown

T = TypeVar("T")


def json_lines(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Each line as a `kind`; empty lines are passed over, and so are fields that it doesn't have.

    Raises:
        PlanError: names file and line.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(_text(path), 1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise at_line(path, number, f"{error}") from error


def csv_rows(path: Path, needed: tuple[str, ...], example: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row by the names of its columns, of which all `needed` must be there.

    Raises:
        PlanError: names file and line.
    """
    reader = csv.reader(_text(path), strict=True)
    heading: list[str] | None = None
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise at_line(path, number, f"no CSV: {error}") from error
        if row is None:
            return
        if not row:
            continue
        if heading is None:
            heading = _heading(path, number, row, needed, example)
        elif len(row) != len(heading):
            raise at_line(path, number, f"{len(row)} fields where the heading has {len(heading)}")
        else:
            yield number, dict(zip(heading, row, strict=True))


def at_line(path: Path, number: int, complaint: str) -> PlanError:
    return PlanError(f"{named(path)} line {number}: {complaint}")


def _heading(path: Path, number: int, row: list[str], needed: tuple[str, ...], example: str) -> list[str]:
    heading = [name.strip() for name in row]
    for name in needed:
        if name not in heading:
            raise at_line(
                path, number, f"the heading has no column {shown(name)}{nearest(name, heading)} (expected: {example})"
            )
    return heading


def _text(path: Path) -> Iterator[str]:
    """Lines as they are read: what comes after the last one that is wanted may be broken."""
    number = 0
    try:
        with _opened(path) as file:
            for line in file:
                number += 1
                yield line
    except UnicodeDecodeError as error:
        raise PlanError(
            f"{named(path)}: no text in UTF-8, from somewhere after line {number} on ({error.reason})"
        ) from error
    except OSError as error:
        raise PlanError(f"{named(path)}: can't be read ({error.strerror or error})") from error


def _opened(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8-sig", newline="")
    except ValueError as error:  # a NUL in the name
        raise PlanError(f"{named(path)}: no name of a file") from error
