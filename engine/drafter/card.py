"""The card of a head: its `README.md`, written from what the run left, so that no figure in it is typed."""

from __future__ import annotations

import platform
from collections import Counter
from typing import Final

import msgspec

from engine.drafter import answers
from engine.drafter.evaluation.result import Evaluation
from engine.drafter.evaluation.text import table
from engine.drafter.prompts import PromptSets
from engine.drafter.recipe import KINDS
from engine.drafter.work import Run, Work
from engine.models import ModelPath

_LICENCES: Final = {"SmolLM2-135M-Instruct": "Apache-2.0"}
"""Of targets that are known here."""


def write(work: Work, model: ModelPath) -> None:
    """Write (again) the README.md of `work.head` and `work.early_head`."""
    for folder, what in ((work.head, "the best"), (work.early_head, "an early, worse")):
        if folder.exists():
            (folder / "README.md").write_text(_text(work, model, what), encoding="utf-8")


def _text(work: Work, model: ModelPath, what: str) -> str:
    run = msgspec.json.decode((work.folder / "run.json").read_bytes(), type=Run)
    parts = [_head(model, what), _data(work), _recipe(run), _looks(work)]
    if work.evaluation.exists():
        evaluation = msgspec.json.decode(work.evaluation.read_bytes(), type=Evaluation)
        parts.append(f"## As served by vLLM\n\n```text\n{table(evaluation)}\n```\n")
    return "\n".join(parts)


def _head(model: ModelPath, what: str) -> str:
    licence = _LICENCES.get(model.name, "the target's own")
    return f"""# An EAGLE-3 head for {model.name}

A drafter for speculative decoding with vLLM (`"method": "eagle3"`): one decoder layer, trained by
`specdeck drafter train` to foresee this one target; {what} weights of its run. Useless with any other model.

- Target: `{model.identity}`
- Licence of the target: {licence}; the head is derived from its weights and answers, and has the same licence.
"""


def _data(work: Work) -> str:
    sets = msgspec.json.decode(work.prompts.read_bytes(), type=PromptSets)
    tokens: Counter[str] = Counter()
    prompts: Counter[str] = Counter()
    greedy = 0
    for path in answers.training_shards(work):
        for exchange in answers.read(path):
            tokens[exchange.kind] += len(exchange.answer)
            prompts[exchange.kind] += 1
            greedy += exchange.temperature == 0
    apart = Counter(exchange.kind for exchange in answers.read(answers.shard_path(work, answers.HELD_OUT)))
    rows = "\n".join(f"| {kind} | {prompts[kind]:,} | {tokens[kind]:,} | {apart[kind]:,} |" for kind in KINDS)
    total, count = sum(tokens.values()), sum(prompts.values())
    topics = len({prompt.topic for prompt in sets.held_out})
    return f"""## Data

The target's own answers to prompts made of templates, topics, and (for code and rewriting) sources and reference
texts of Python {platform.python_version()}'s standard library. {greedy / max(1, count):.0%} of the answers are greedy,
the others sampled. The held-out prompts are about {topics} topics of which no training prompt is.

| kind | training prompts | answer tokens | held-out prompts |
| --- | --- | --- | --- |
{rows}
| all | {count:,} | {total:,} | {sum(apart.values()):,} |
"""


def _recipe(run: Run) -> str:
    recipe = msgspec.json.format(msgspec.json.encode(run.recipe)).decode()
    return f"""## Recipe

States of the target at four depths; soft cross-entropy against the target's distribution over the draft vocabulary;
AdamW, cosine schedule; later draft positions trained on the head's own output (training-time test).

```json
{recipe}
```
"""


def _looks(work: Work) -> str:
    from engine.drafter.fit import history

    looks = history(work)
    best = max(looks, key=lambda look: look.held_out.score)
    rows = "\n".join(
        f"| {kind} | {found.drafts:,} | " + " | ".join(f"{share:.3f}" for share in found.conditional) + " |"
        for kind, found in best.held_out.kinds.items()
    )
    return f"""## Held-out acceptance, without an engine

Temperature 0, a draft begun at every token of the held-out answers, acceptance at each draft position given that those
before it were accepted. Best of {len(looks)} looks: step {best.step:,} (training acceptance at position 0 then:
{best.trained:.3f}).

| kind | drafts | position 0 | position 1 | position 2 | position 3 |
| --- | --- | --- | --- | --- | --- |
{rows}
"""
