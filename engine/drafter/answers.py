"""The target answers the prompts, through vLLM: a drafter learns what its target says, not what is right.

One engine in this process, without speculation, in shards that are written whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.drafter.chat import as_asked
from engine.drafter.progress import Progress
from engine.drafter.prompts import Prompt, PromptSets
from engine.drafter.recipe import Kind, Recipe
from engine.drafter.work import Narrate, Work, whole

HELD_OUT: Final = "held-out"
"""Name of the shard of the held-out prompts."""


class Answer(msgspec.Struct, frozen=True):
    """Token ids of one exchange, as the target saw them."""

    kind: Kind
    temperature: float
    prompt: list[int]
    answer: list[int]


def generate(work: Work, sets: PromptSets, recipe: Recipe, model: str, narrate: Narrate) -> None:
    """Write what is missing of `work.answers`: one JSON Lines file a shard, and one for the held-out prompts."""
    shards = dict(_shards(sets, recipe))
    missing = {name: prompts for name, prompts in shards.items() if not shard_path(work, name).exists()}
    if not missing:
        return
    done = sum(len(prompts) for name, prompts in shards.items() if name not in missing)
    progress = Progress("answers", "prompts", sum(map(len, shards.values())), done, narrate)
    engine = _Generator(model, recipe)
    for name, prompts in missing.items():
        answers = engine.answer(prompts, progress)
        with whole(shard_path(work, name)) as draft, draft.open("wb") as file:
            for answer in answers:
                file.write(msgspec.json.encode(answer) + b"\n")


def shard_path(work: Work, name: str) -> Path:
    return work.answers / f"{name}.jsonl"


def training_shards(work: Work) -> list[Path]:
    return sorted(path for path in work.answers.glob("*.jsonl") if path.stem != HELD_OUT)


def read(path: Path) -> list[Answer]:
    decoder = msgspec.json.Decoder(Answer)
    with path.open("rb") as file:
        return [decoder.decode(line) for line in file]


def _shards(sets: PromptSets, recipe: Recipe) -> Iterator[tuple[str, Sequence[Prompt]]]:
    yield HELD_OUT, sets.held_out
    for start in range(0, len(sets.training), recipe.shard_prompts):
        yield f"{start // recipe.shard_prompts:05d}", sets.training[start : start + recipe.shard_prompts]


class _Generator:
    """The target in vLLM, in this process."""

    def __init__(self, model: str, recipe: Recipe) -> None:
        from vllm import LLM

        self._recipe = recipe
        self._llm: Any = LLM(
            model,
            dtype="auto",
            seed=recipe.seed,
            max_model_len=recipe.max_prompt_tokens + recipe.max_answer_tokens,
            max_num_seqs=recipe.generation_batch,
            enable_prefix_caching=False,
        )
        self._tokenizer = self._llm.get_tokenizer()

    def answer(self, prompts: Sequence[Prompt], progress: Progress) -> list[Answer]:
        """In the order of the prompts. One longer than the recipe allows is left out."""
        from vllm import SamplingParams

        engine = self._llm.llm_engine
        waiting: dict[str, tuple[Prompt, list[int]]] = {}
        for number, prompt in enumerate(prompts):
            ids = as_asked(self._tokenizer, prompt.text)
            if len(ids) > self._recipe.max_prompt_tokens:
                progress.advance(1)
                continue
            parameters = SamplingParams(temperature=prompt.temperature, max_tokens=self._recipe.max_answer_tokens)
            engine.add_request(str(number), {"prompt_token_ids": ids}, parameters)
            waiting[str(number)] = (prompt, ids)
        finished: dict[str, list[int]] = {}
        while engine.has_unfinished_requests():
            for output in engine.step():
                if output.finished:
                    finished[output.request_id] = list(output.outputs[0].token_ids)
                    progress.advance(1)
        return [
            Answer(prompt.kind, prompt.temperature, ids, finished[number]) for number, (prompt, ids) in waiting.items()
        ]
