"""What to do about an engine that does not start, by what is known of its end; and what a start is about now. Pure."""

from __future__ import annotations

import re
from typing import Final

from console.app.drawing.spans import clean
from console.feed.messages import EngineView

_REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    (
        r"KV cache|max_model_len|max(imum)? (seq|model) len",
        "The contexts don't fit into its memory: give a smaller --max-model-len or --max-num-seqs.",
    ),
    (
        r"OutOfMemory|out of memory|MemoryError|Cannot allocate memory|SIGKILL",
        "That is too little memory: end what else uses it (`specdeck doctor` shows what is free), or give a smaller "
        "--max-model-len or --max-num-seqs, or a smaller --model.",
    ),
    (
        r"No space left|Errno 28|MiB free|disk.*full",
        "The disk is full: free some of it, or set SPECDECK_CACHE_DIR and SPECDECK_DATA_DIR to a larger one.",
    ),
    (
        r"[Aa]ddress already in use|Errno 98|is taken by",
        "Another program has that port: end it, or `specdeck stop` and start again with another --port.",
    ),
    (
        r"huggingface|HfHub|LocalEntryNotFound|Max retries|ConnectionError|Name or service not known|offline mode",
        "The model hub can't be reached from here: --model takes a folder on this machine too, and `bundled` needs "
        "neither.",
    ),
    (
        r"CUDA driver|No CUDA|no NVIDIA|libcuda|cuda.*not available",
        "There is no usable GPU here: `pip install 'specdeck[cpu]'` in an environment of its own runs without one.",
    ),
)

_STAGES: Final[dict[str, str]] = {
    "process": "vLLM is being loaded: it says nothing for some seconds.",
    "engine core": "vLLM sets its engine up.",
    "weights": "The weights are read into memory.",
    "KV cache": "Memory for the contexts is set aside.",
    "warm-up": "vLLM compiles and warms up: the longest part of a first start; later ones find it compiled.",
    "serving": "Its server begins to answer.",
}


def remedy(detail: str) -> str | None:
    """What to do about an end that is known by its last words; None where they tell nothing."""
    return next((text for pattern, text in _REMEDIES if re.search(pattern, detail)), None)


def what_happens(engine: EngineView) -> str:
    """What a start does now, with what, and what comes then."""
    where = {"cpu": " on this machine's CPU", "cuda": " on this machine's GPU"}.get(engine.device, "")
    running = next((phase.name for phase in engine.phases if phase.state == "running"), "")
    then = "Then it serves."
    if engine.target == "bundled":
        needs = ": it needs no GPU and no model hub" if engine.device == "cpu" else ": it needs no model hub"
        with_what = f"The model that comes with specdeck, SmolLM2-135M-Instruct, will run{where}{needs}."
        first = "It is converted first, once, in about 20 s."
    else:
        with_what = f"{clean(engine.target) or 'The model'} will run{where}."
        first = "What of it is not on this machine is fetched from the model hub, as long as that takes."
    return f"{with_what} {first if running == 'model' else _STAGES.get(running, '')} {then}".replace("  ", " ")
