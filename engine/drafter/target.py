"""What a head needs of its target, through transformers: states at some depths, the embedding, the output layer.

The numbering of the depths is vLLM's: depth k is the residual stream after k decoder layers, so the last depth is the
input of the final norm, from which the target's own next-token distribution follows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class TargetError(Exception):
    """A target that no EAGLE-3 head can be trained for here: says why."""


def depths(layers: int) -> list[int]:
    """Where the states are taken, for a target of so many layers: an early, two middle, and the last depth."""
    return sorted({min(2, layers), round(layers * 0.4), round(layers * 0.7), layers} - {0})


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Target:
    """A Llama-type model: `model.embed_tokens`, `model.layers`, `model.norm`, `lm_head`."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM

        self._causal: Any = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.bfloat16).eval().to(device())
        self._model: Any = getattr(self._causal, "model", object())
        if not all(hasattr(self._model, part) for part in ("embed_tokens", "layers", "norm")):
            raise TargetError(f"{folder}: {type(self._causal).__name__} is not built like a Llama; give one that is")
        self.config = self._causal.config
        self.depths = depths(len(self._model.layers))

    @property
    def width(self) -> int:
        return int(self.config.hidden_size)

    def states(self, ids: Tensor) -> Tensor:
        """[batch, length] token ids, padded on the right → [batch, length, depths × width], bf16.

        A causal model's states don't depend on what follows, so the padding needs no mask.
        """
        taken: dict[int, Tensor] = {}
        hooks = [self._model.layers[depth - 1].register_forward_hook(_keep(taken, depth)) for depth in self.depths]
        try:
            with torch.inference_mode():
                self._model(ids.to(device()), use_cache=False)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.cat([taken[depth] for depth in self.depths], dim=-1)

    def embedding(self) -> Tensor:
        """[vocabulary, width]"""
        weight: Tensor = self._model.embed_tokens.weight.detach()
        return weight

    def output_rows(self, ids: Tensor) -> Tensor:
        """[len(ids), width]: the rows of the output layer for these tokens."""
        weight: Tensor = self._causal.lm_head.weight.detach()
        return weight[ids.to(weight.device)]

    def normed(self, states: Tensor) -> Tensor:
        """[…, depths × width] → [n, width]: what the output layer reads, from the last depth."""
        normed: Tensor = self._model.norm(states[..., -self.width :])
        return normed

    def forget_layers(self) -> None:
        """Free the decoder layers: training reads their states from disk."""
        self._model.layers = torch.nn.ModuleList()


def _keep(taken: dict[int, Tensor], depth: int) -> Any:
    def hook(module: Any, arguments: Any, output: Any) -> None:
        del module, arguments
        taken[depth] = output[0] if isinstance(output, tuple) else output

    return hook
