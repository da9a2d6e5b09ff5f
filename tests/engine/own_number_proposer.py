"""A `custom_class` drafter that is never told K and proposes its own number: three times the last token."""

from __future__ import annotations

from typing import Any


class OwnNumber:
    def __init__(self, vllm_config: Any) -> None:
        del vllm_config

    def propose(self, sampled_token_ids: list[list[int]], *args: Any, **kwargs: Any) -> list[list[int]]:
        del args, kwargs
        return [[tokens[-1]] * 3 if tokens else [] for tokens in sampled_token_ids]

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
