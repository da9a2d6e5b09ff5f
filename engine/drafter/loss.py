"""Cross-entropy of the head's distribution against its target's, over the draft vocabulary.

Output layer and loss are one function with its gradient written out, in pieces: the logits of a batch (tokens × draft
vocabulary) never exist as a whole.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

_PIECE: Final = 512
"""Tokens of a piece."""


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: Tensor, weight: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """outputs [n, hidden], weight [vocabulary, hidden], wanted [n, vocabulary] → (mean loss, drafts [n])."""
        narrow = weight.to(torch.bfloat16)
        total = outputs.new_zeros((), dtype=torch.float32)
        outputs_gradient = torch.empty_like(outputs, dtype=torch.bfloat16)
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32)
        drafts = []
        for start in range(0, len(outputs), _PIECE):
            piece = slice(start, start + _PIECE)
            read, right = outputs[piece].to(torch.bfloat16), wanted[piece].float()
            logits = (read @ narrow.T).float()
            drafts.append(logits.argmax(-1))
            logits = logits.log_softmax(-1)
            total -= (right * logits).sum()
            slope = ((logits.exp_() - right) / len(outputs)).to(torch.bfloat16)
            outputs_gradient[piece] = slope @ narrow
            weight_gradient += slope.T @ read
        ctx.save_for_backward(outputs_gradient, weight_gradient)
        picked = torch.cat(drafts)
        ctx.mark_non_differentiable(picked)
        return total / len(outputs), picked

    @staticmethod
    def backward(ctx: Any, slope: Tensor, unused: Any) -> tuple[Tensor, Tensor, None]:
        del unused
        outputs_gradient, weight_gradient = ctx.saved_tensors
        return outputs_gradient * slope, weight_gradient * slope, None


def cross_entropy(outputs: Tensor, weight: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of -Σ wanted·log softmax(outputs·weightᵀ) over the n tokens, and the draft id that each would draft.

    Args:
        outputs: [n, hidden], what the output layer reads.
        weight: [vocabulary, hidden].
        wanted: [n, vocabulary], the target's probabilities.
    """
    loss, drafts = _LinearCrossEntropy.apply(outputs, weight, wanted)
    return loss, drafts
