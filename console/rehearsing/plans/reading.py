"""Plans as they are written: a built-in one by its name, or a TOML file.

name = "evening"                      # default: the file's name
arms = ["without", "k0", "k2", "k4", "proposed", "adaptive"]
repeats = 3                           # of which the first `survey` try the fixed arms alone
survey = 1
seed = 7
scale = 1.0                           # factor on the rates; without it the engine is measured first
fallback_test = true

[[workload]]
name = "code"
share = 0.6                           # all together 1
prompts = "code"                      # code, repeat, chat, creative, or a .jsonl or .csv beside this file
max_tokens = [96, 128]                # one is drawn
temperature = 0.0
deadline = { e2e = 12.0, ttft = 2.0, tpot = 0.15 }     # seconds; any of them

[[phase]]
name = "rising"
seconds = 60
rate = 0.6                            # requests/s at its beginning
to = 2.2                              # and at its end
burstiness = 1.0                      # 1: Poisson; less: more bursty

[trace]                               # instead of rates and max_tokens
file = "azure.csv"
format = "azure"                      # azure, burstgpt, mooncake
speed = 1.0
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, Literal, cast

from console.rehearsing.plans.built_in import BUILT_IN
from console.rehearsing.plans.checking import check
from console.rehearsing.plans.errors import PlanError, named, nearest, shown
from console.rehearsing.plans.fields import Table
from console.rehearsing.plans.prompt_files import SUFFIXES
from console.rehearsing.plans.prompt_sets import OURS, lengths_of, temperature_of
from console.rehearsing.plans.public_traces import FORMATS
from engine.toml_text import parse_toml
from store.rehearsal.plan import Deadline, Mix, Phase, Plan, PublicTrace

__all__ = ["PlanError", "parse_plan", "read_plan"]

_PLAN: Final = (
    "name", "arms", "repeats", "survey", "seed", "scale", "fallback_test", "workload", "phase", "trace",
)  # fmt: skip
_WORKLOAD: Final = ("name", "share", "prompts", "max_tokens", "temperature", "deadline")
_PHASE: Final = ("name", "seconds", "rate", "to", "burstiness")
_TRACE: Final = ("file", "format", "speed")
_DEADLINE: Final = Deadline.__struct_fields__

_LONGEST: Final = 1 << 20
"""Bytes of a file that are looked at: a larger one is no plan."""


def read_plan(source: str) -> Plan:
    """The built-in plan of that name, or the one written in that file; checked, with the paths in it absolute.

    Raises:
        PlanError: no such plan, or whatever is wrong with it or with a file that it names.
    """
    if source in BUILT_IN:
        return BUILT_IN[source]
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        raise PlanError(
            f"there is no plan {shown(source)}{nearest(source, BUILT_IN)} (built in: {', '.join(BUILT_IN)}; or the "
            "path of a .toml file)"
        )
    return parse_plan(_text_of(path), path)


def parse_plan(text: str, path: Path) -> Plan:
    """A plan from the text of the file `path`, by which complaints are named and paths are found.

    Raises:
        PlanError: as `read_plan`.
    """
    try:
        plan = _plan(_parsed(text), path)
        check(plan)
    except PlanError as error:
        raise PlanError(f"{named(path)}: {error}") from error
    return plan


def _parsed(text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise PlanError(f"no TOML: {error}") from error


def _plan(entries: dict[str, Any], path: Path) -> Plan:
    table = Table(entries, "", _PLAN)
    workloads = table.tables("workload", _WORKLOAD)
    traced = table.has("trace")
    return Plan(
        name=table.text("name", path.stem),
        arms=table.texts("arms", '["without", "k0", "k2"]'),
        mix=tuple(_mix(one, path.parent, alone=len(workloads) == 1) for one in workloads),
        phases=tuple(_phase(one, traced) for one in table.tables("phase", _PHASE)),
        repeats=table.whole("repeats", 1),
        survey=table.whole("survey", 1),
        seed=table.whole("seed", 7),
        scale=table.maybe("scale"),
        fallback_test=table.flag("fallback_test", True),
        trace=_trace(table.table("trace", _TRACE, "trace"), path.parent) if traced else None,
    )


def _mix(table: Table, folder: Path, alone: bool) -> Mix:
    name = table.text("name", example='"chat"')
    prompts = table.text("prompts", name if name in OURS else None, '"chat" or "mine.jsonl"')
    deadline = table.table("deadline", _DEADLINE, f"{table.where}: deadline")
    return Mix(
        name=name,
        share=table.number("share", 1.0 if alone else None, "0.5"),
        prompts=_beside(folder, prompts) if prompts.lower().endswith(SUFFIXES) else prompts,
        max_tokens=table.wholes("max_tokens", lengths_of(prompts)),
        temperature=table.number("temperature", temperature_of(prompts)),
        deadline=Deadline(**{limit: deadline.maybe(limit) for limit in _DEADLINE}),
    )


def _phase(table: Table, traced: bool) -> Phase:
    return Phase(
        name=table.text("name", example='"busy"'),
        seconds=table.number("seconds", example="60"),
        rate=table.number("rate", 0.0 if traced else None, "2.0"),
        to=table.maybe("to"),
        burstiness=table.number("burstiness", 1.0),
    )


def _trace(table: Table, folder: Path) -> PublicTrace:
    form = table.text("format", example='"azure"')
    if form not in FORMATS:
        raise table.error(f"format {shown(form)} is none of {', '.join(FORMATS)}{nearest(form, FORMATS)}")
    return PublicTrace(
        file=_beside(folder, table.text("file", example='"azure.csv"')),
        format=cast(Literal["azure", "burstgpt", "mooncake"], form),
        speed=table.number("speed", 1.0),
    )


def _beside(folder: Path, name: str) -> str:
    """A path in a plan counts from the plan's own folder, wherever the command is typed."""
    return os.path.abspath(folder / name)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise PlanError(f"{named(path)}: larger than {_LONGEST >> 20} MiB, no plan")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{named(path)}: no text in UTF-8 ({error.reason})") from error
    except (OSError, ValueError) as error:
        raise PlanError(f"{named(path)}: can't be read ({getattr(error, 'strerror', None) or error})") from error
