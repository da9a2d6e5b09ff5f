"""A `custom_class` drafter whose acceptance is dialled: it knows what the model will say, and plants errors in it.

It learns: of prompts with the same first token it remembers which token followed which four, so that at temperature 0
a prompt that comes again is known by heart. A file says which share of its tokens is to be wrong, by the first token of
the prompt, and may change while the engine runs. It is never told K: it proposes its maximum.

Environment: `SPECDECK_TEST_PLAN`, the path of that file: `{"FIRST TOKEN ID": SHARE}`; 0 for first tokens it leaves out.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "SPECDECK_TEST_PLAN"
DEPTH = 4
_MOST = 500_000


class Planted:
    def __init__(self, vllm_config: Any) -> None:
        self._k = int(vllm_config.speculative_config.num_speculative_tokens)
        self._longest = int(vllm_config.model_config.max_model_len)
        self._vocabulary = int(vllm_config.model_config.get_vocab_size())
        self._plan = Plan(Path(os.environ[VARIABLE]))
        self._next: dict[tuple[int, ...], int] = {}

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """There is none."""

    def propose(
        self, sampled_token_ids: list[list[int]], num_tokens: Any, token_ids: Any, *args: Any, **kwargs: Any
    ) -> list[list[int]]:
        """Draft tokens of each sequence of the batch; none where nothing was sampled, as amid a prefill."""
        del args, kwargs
        shares = self._plan.shares()
        if len(self._next) > _MOST:
            self._next.clear()
        return [
            self._draft(token_ids[place, : num_tokens[place]].tolist(), len(sampled), shares) if sampled else []
            for place, sampled in enumerate(sampled_token_ids)
        ]

    def _draft(self, tokens: list[int], new: int, shares: dict[int, float]) -> list[int]:
        first = tokens[0]
        for place in range(max(DEPTH, len(tokens) - new), len(tokens)):
            self._next[(first, *tokens[place - DEPTH : place])] = tokens[place]
        drafts: list[int] = []
        right = tokens[-DEPTH:]
        for place in range(len(tokens), min(len(tokens) + self._k, self._longest)):
            token = self._next.get((first, *right[-DEPTH:]), right[-1])
            right.append(token)
            wrong = (place * 0.6180339887) % 1 < shares.get(first, 0.0)
            drafts.append((token + 1) % self._vocabulary if wrong else token)
        return drafts


class Plan:
    """The file, read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = -1
        self._shares: dict[int, float] = {}

    def shares(self) -> dict[int, float]:
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if changed != self._changed:
            self._changed = changed
            self._shares = {int(token): float(share) for token, share in json.loads(self._path.read_text()).items()}
        return self._shares
