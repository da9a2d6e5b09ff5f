"""Whether a folder is an EAGLE head for a target, from the two configs: nothing is loaded."""

from __future__ import annotations

from pathlib import Path

from engine.head_fit import misfit
from engine.models import ModelPath, read_config
from engine.records import Method


class HeadError(Exception):
    """A head that cannot be measured: says why, and what to give instead."""


def check(head: Path, target: ModelPath) -> Method:
    """The speculative method of `head`: `eagle3` or `eagle`.

    Raises:
        HeadError: no EAGLE head, or one for a target of another shape.
        ModelError: no model folder at all.
    """
    config = read_config(head)
    architecture = ", ".join(map(str, config.get("architectures") or []))
    method = _method(architecture.lower())
    if method is None:
        raise HeadError(
            f"{head}: not an EAGLE head (its architecture: {architecture or 'none given'}); "
            "give the folder that specdeck drafter export wrote, bundled or bundled-worse"
        )
    fault = misfit(config, read_config(Path(target.path)))
    if fault is not None:
        raise HeadError(f"{head}: made for another target than {target.name}: {fault}; give its own with --target")
    return method


def _method(architecture: str) -> Method | None:
    if "eagle3" in architecture:
        return "eagle3"
    return "eagle" if "eagle" in architecture else None
