"""The schedule of a map, for vLLM and as a TOML that says what it is of."""

from __future__ import annotations

import json
import time

from console.cli.figures_text import printable
from console.cli.map_text import cost_rows, repeats
from console.cli.rehearse_text_words import engine_words
from engine.schedule import parse_schedule
from engine.schedule_file import VLLM_KEY, to_toml
from store.operating_map.records import OperatingMap


def as_vllm(made: OperatingMap) -> str:
    """A part of vLLM's `--speculative-config`."""
    return json.dumps({VLLM_KEY: [list(entry) for entry in made.schedule or []]})


def as_toml(made: OperatingMap) -> str:
    """`engine.schedule_file`'s form; comments name the rehearsal and what it was made with."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(made.ts))
    said = [f"From operating map {printable(made.id, 60)}, {when}: plan {printable(made.plan)}, {repeats(made)}."]
    said += [f"{name}: {value}" for name, value in engine_words(made.fingerprint)]
    said += [f"tokens/s of {name}: {gain} times those of {made.baseline}" for name, gain, _ in cost_rows(made)]
    return "".join(f"# {line}\n" for line in said) + to_toml(parse_schedule(made.schedule or []))
