"""A file that gets its name when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from store.trace.errors import TraceError


@contextmanager
def whole_file(out: Path, endings: Sequence[str]) -> Iterator[Path]:
    """Where to write what `out` is going to be. It is removed when that fails.

    Raises:
        TraceError: `out` is there already, ends in none of `endings`, or can't be written.
    """
    ending = next((one for one in sorted(endings, key=len, reverse=True) if out.name.endswith(one)), None)
    if ending is None:
        raise TraceError(out, None, f"can't tell what to write; name it {', '.join(endings)}")
    if out.exists():
        raise TraceError(out, None, "exists; choose another name, or remove it first")
    if not out.parent.is_dir():
        raise TraceError(out, None, f"there is no folder {out.parent}")
    partial = out.with_name(f".{out.name.removesuffix(ending)}.partial-{os.getpid()}{ending}")
    try:
        yield partial
        os.replace(partial, out)
    except OSError as error:
        raise TraceError(out, None, f"can't be written: {error.strerror or error}") from error
    finally:
        for leftover in (partial, partial.with_name(partial.name + ".wal")):
            leftover.unlink(missing_ok=True)
