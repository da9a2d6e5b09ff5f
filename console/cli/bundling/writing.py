"""Redacts what was gathered for a bundle, and writes it."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path

import msgspec

from console.cli.bundling.gathered import Gathered
from console.cli.outcomes import BadInput
from store.bundle.archive import BundleError, write_bundle
from store.bundle.contents import TRACE, Bundle
from store.bundle.parts import json_part, learn_trace, log_part, redact_trace
from store.database import StoreError
from store.redact.redactor import Redactor


def write(gathered: Gathered, target: Path, folder: Path, hours: float, made: float, keep_tags: bool) -> dict[str, int]:
    """Redact what was gathered, and write it."""
    redactor = Redactor(gathered.private, keep_tags=keep_tags)
    redacted = _redacted(gathered, redactor, folder)
    gathered.missing = {name: redactor.text(why) for name, why in redacted.missing.items()}
    gathered.doubts = [redactor.text(doubt) for doubt in gathered.doubts]
    subject = f"{redactor.text(gathered.subject)}: the last {hours:g} h of the recording"
    try:
        made_of = Bundle(subject, redacted.raw, gathered.missing, keep_tags, tuple(gathered.doubts))
        return write_bundle(made_of, target, made)
    except BundleError as error:
        raise BadInput(str(error)) from error


def _redacted(gathered: Gathered, redactor: Redactor, folder: Path) -> Gathered:
    """The same parts as they go into the bundle. All are learnt from before the first is redacted."""
    done = Gathered(gathered.subject, gathered.private)
    done.missing = dict(gathered.missing)
    for value in gathered.raw.values():
        if not isinstance(value, Path):
            redactor.learn(msgspec.to_builtins(value))
    if TRACE in gathered.raw:
        with contextlib.suppress(StoreError):  # said where it is redacted
            learn_trace(gathered.raw[TRACE], redactor)
    for names in gathered.names:
        redactor.learn(names)
    for name, value in gathered.raw.items():
        if name == TRACE:
            done.take(name, partial(redact_trace, value, folder / TRACE, redactor))
        else:
            done.take(name, partial(log_part if isinstance(value, Path) else json_part, value, redactor))
    return done
