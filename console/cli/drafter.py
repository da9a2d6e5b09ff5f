"""`specdeck drafter`: train a learned drafter for a target, and measure one."""

from __future__ import annotations

from console.cli.lazy import Lazy, LazyGroup

_STAGES = "console.cli.drafter_stages"

drafter = LazyGroup(
    "drafter",
    lazy={
        "train": Lazy(_STAGES, "train", "All stages: from prompts to an evaluated EAGLE-3 head."),
        "prompts": Lazy(_STAGES, "prompts", "Stage 1: build the training and held-out prompts."),
        "answers": Lazy(_STAGES, "answers", "Stage 2: let the target answer them, through vLLM."),
        "features": Lazy(_STAGES, "features", "Stage 3: write the target's hidden states to disk."),
        "fit": Lazy(_STAGES, "fit", "Stage 4: train the head on them."),
        "export": Lazy(_STAGES, "export", "Stage 5: write the folder that vLLM loads, with its card."),
        "evaluate": Lazy("console.cli.drafter_evaluate", "evaluate", "Acceptance and speed of a head, on the engine."),
    },
    help="An EAGLE-3 drafter for a target: train it, measure it. Every stage goes on where it was cut off.",
    epilog="Example: specdeck drafter train --recipe tiny --work ./my-head",
)
