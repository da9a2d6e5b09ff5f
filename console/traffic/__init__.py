"""Demo traffic: four workloads that speculate differently, sent open-loop to any OpenAI-compatible base URL.

`run` is the way in for the demo; `python -m console.traffic` is the same from a shell.
"""

from console.traffic.plan import PROFILES, Phase, Profile
from console.traffic.progress import Progress, Result
from console.traffic.runner import ServerUnreachable, run

__all__ = ["PROFILES", "Phase", "Profile", "Progress", "Result", "ServerUnreachable", "run"]
