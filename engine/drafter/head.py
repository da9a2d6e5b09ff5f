"""The EAGLE-3 head in torch. Parameter names and arithmetic are vLLM's (`llama_eagle3.py`): a trained one loads there.

At place t the head reads the embedding of token t+1 and the target's states at token t, and predicts token t+2. For a
further draft token it reads its own output instead of the states it does not have yet ("training-time test": Li et al.,
EAGLE-3, 2025, section 3.2): draft position k of place t attends to the true places up to t-k and to its own k outputs.
"""

from __future__ import annotations

from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn import functional

_INITIAL_SPREAD = 0.02


class Shape(msgspec.Struct, frozen=True):
    """Sizes of a head, from its target's config."""

    hidden: int
    inner: int
    heads: int
    key_heads: int
    head_width: int
    depths: int
    draft_vocabulary: int
    norm_eps: float
    rope_theta: float


class Norm(nn.Module):
    """RMS norm."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._eps = eps

    def forward(self, values: Tensor) -> Tensor:
        return functional.rms_norm(values.float(), self.weight.shape, self.weight.float(), self._eps).to(values.dtype)


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape
        self.q_proj = nn.Linear(2 * shape.hidden, shape.heads * shape.head_width, bias=False)
        self.k_proj = nn.Linear(2 * shape.hidden, shape.key_heads * shape.head_width, bias=False)
        self.v_proj = nn.Linear(2 * shape.hidden, shape.key_heads * shape.head_width, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.head_width, shape.hidden, bias=False)

    def forward(self, values: Tensor, earlier: list[tuple[Tensor, Tensor]]) -> Tensor:
        """[batch, length, 2 × hidden] → [batch, length, hidden].

        Args:
            earlier: keys and values of the draft positions before this one; this one's are appended.
        """
        queries, keys, contents = self._projected(values)
        earlier.append((keys, contents))
        if len(earlier) == 1:
            mixed = functional.scaled_dot_product_attention(queries, keys, contents, is_causal=True)
        else:
            mixed = _mix(queries, earlier)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def _projected(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shape = self._shape
        turn = _rotation(values.shape[1], shape.head_width, shape.rope_theta, values.device)
        queries = _rotate(self._split(self.q_proj(values), shape.heads), turn)
        keys = _rotate(self._split(self.k_proj(values), shape.key_heads), turn)
        contents = self._split(self.v_proj(values), shape.key_heads)
        groups = shape.heads // shape.key_heads
        return queries, keys.repeat_interleave(groups, 1), contents.repeat_interleave(groups, 1)

    def _split(self, values: Tensor, heads: int) -> Tensor:
        """[batch, length, heads × width] → [batch, heads, length, width]"""
        return values.unflatten(-1, (heads, self._shape.head_width)).transpose(1, 2)


def _mix(queries: Tensor, kept: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Attention of draft position k ≥ 1: to the true places up to t-k, and to draft positions 1…k of the same chain,
    which lie at places t-k+1…t."""
    last = len(kept) - 1
    scale = queries.shape[-1] ** -0.5
    length = queries.shape[-2]
    true_keys, true_values = kept[0]
    seen = torch.ones(length, length, dtype=torch.bool, device=queries.device).tril(-last)
    scores = [((queries @ true_keys.transpose(-1, -2)) * scale).masked_fill(~seen, float("-inf"))]
    drafted = [(_later(keys, last - place), _later(values, last - place)) for place, (keys, values) in enumerate(kept)]
    for keys, _ in drafted[1:]:
        scores.append((queries * keys).sum(-1, keepdim=True) * scale)
    shares = torch.cat(scores, dim=-1).float().softmax(-1).to(queries.dtype)
    mixed = shares[..., :length] @ true_values
    for place, (_, values) in enumerate(drafted[1:]):
        mixed = mixed + shares[..., length + place, None] * values
    return mixed


def _later(values: Tensor, places: int) -> Tensor:
    """Moved to later places of the length axis (-2), zeros before."""
    return functional.pad(values, (0, 0, places, 0))[..., : values.shape[-2], :] if places else values


class Mlp(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(values)) * self.up_proj(values))


class Layer(nn.Module):
    """A decoder layer whose attention reads embedding and states side by side."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.hidden, shape.norm_eps)
        self.hidden_norm = Norm(shape.hidden, shape.norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = Norm(shape.hidden, shape.norm_eps)
        self.mlp = Mlp(shape)

    def forward(self, embedded: Tensor, hidden: Tensor, earlier: list[tuple[Tensor, Tensor]]) -> Tensor:
        both = torch.cat([self.input_layernorm(embedded), self.hidden_norm(hidden)], dim=-1)
        hidden = hidden + self.self_attn(both, earlier)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Head(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.fc_norm = nn.ModuleList([Norm(shape.hidden, shape.norm_eps) for _ in range(shape.depths)])
        self.fc = nn.Linear(shape.depths * shape.hidden, shape.hidden, bias=False)
        self.midlayer = Layer(shape)
        self.norm = Norm(shape.hidden, shape.norm_eps)
        self.lm_head = nn.Linear(shape.hidden, shape.draft_vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=_INITIAL_SPREAD)

    def forward(self, embedded: Tensor, states: Tensor, positions: int) -> list[Tensor]:
        """What `lm_head` reads, for each of `positions` draft positions: [batch, length, hidden] each.

        Args:
            embedded: [batch, length, hidden], at place t the embedding of token t+1.
            states: [batch, length, depths × hidden], at place t the target's states at token t.
        """
        hidden = self._combined(states)
        earlier: list[tuple[Tensor, Tensor]] = []
        outputs = []
        for _ in range(positions):
            hidden = self.midlayer(embedded, hidden, earlier)
            outputs.append(self.norm(hidden))
            hidden = _later(hidden, 1)
        return outputs

    def _combined(self, states: Tensor) -> Tensor:
        chunks = states.chunk(self.shape.depths, dim=-1)
        return self.fc(torch.cat([norm(chunk) for norm, chunk in zip(self.fc_norm, chunks, strict=True)], dim=-1))


def _rotation(length: int, width: int, theta: float, device: Any) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary position embedding, [length, width] each."""
    rates = theta ** (-torch.arange(0, width, 2, device=device).float() / width)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def _rotate(values: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cosines, sines = (part.to(values.dtype) for part in turn)
    first, second = values.chunk(2, dim=-1)
    return values * cosines + torch.cat([-second, first], dim=-1) * sines
