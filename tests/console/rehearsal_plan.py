"""A plan of seconds, for stand-in engines."""

from __future__ import annotations

from pathlib import Path

PLAN = """
name = "tiny"
arms = [{arms}]
repeats = {repeats}
survey = 1
scale = 1.0
fallback_test = {fallback_test}

[[workload]]
name = "code"
share = 0.5
max_tokens = [24, 40]
deadline = {{ e2e = 5.0 }}

[[workload]]
name = "chat"
share = 0.5
max_tokens = [24]

[[phase]]
name = "quiet"
seconds = {seconds}
rate = 4

[[phase]]
name = "busy"
seconds = {seconds}
rate = 12
"""


def write_plan(folder: Path, *arms: str, repeats: int = 1, fallback_test: bool = False, seconds: float = 0.8) -> Path:
    path = folder / "tiny.toml"
    path.write_text(
        PLAN.format(
            arms=", ".join(f'"{arm}"' for arm in arms),
            repeats=repeats,
            seconds=seconds,
            fallback_test=str(fallback_test).lower(),
        )
    )
    return path
