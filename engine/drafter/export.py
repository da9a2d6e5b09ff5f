"""The trained head as a folder that vLLM loads as an EAGLE-3 drafter: weights in bf16, config, card."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import msgspec
import torch
from torch import Tensor

from engine.drafter import card
from engine.drafter.fit import BEST, EARLY
from engine.drafter.target import Target
from engine.drafter.work import Work, WorkError, draft_of
from engine.models import ModelPath

_KEPT: Final = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
    "max_position_embeddings", "rms_norm_eps", "bos_token_id", "eos_token_id", "hidden_act",
)  # fmt: skip
"""Settings that the head shares with its target."""


def export(work: Work, model: ModelPath) -> None:
    """Write `work.head` from the best weights, and `work.early_head` from the early ones, where the run kept some.

    Raises:
        WorkError: nothing was fitted yet.
    """
    if not (work.fit / BEST).exists():
        raise WorkError(f"{work.fit}: no fitted weights; run the stage before (specdeck drafter fit)")
    target = Target(Path(model.path))
    for name, folder in ((BEST, work.head), (EARLY, work.early_head)):
        if (work.fit / name).exists():
            _write(work.fit / name, folder, target, model)
    card.write(work, model)


def _write(fitted: Path, folder: Path, target: Target, model: ModelPath) -> None:
    from safetensors.torch import save_file

    state = torch.load(fitted, map_location="cpu")
    draft = draft_of(folder)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    kept: Tensor = state["kept"].cpu()
    save_file(_weights(state["head"], kept, int(target.config.vocab_size)), str(draft / "model.safetensors"))
    config = msgspec.json.encode(_config(target, len(kept), model))
    (draft / "config.json").write_bytes(msgspec.json.format(config) + b"\n")
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


def _weights(head: dict[str, Tensor], kept: Tensor, vocabulary: int) -> dict[str, Tensor]:
    """vLLM's names; `d2t` is target id minus draft id, `t2d` which target tokens can be drafted."""
    weights = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in head.items()}
    known = torch.zeros(vocabulary, dtype=torch.bool)
    known[kept] = True
    return weights | {"d2t": kept - torch.arange(len(kept)), "t2d": known}


def _config(target: Target, draft_vocabulary: int, model: ModelPath) -> dict[str, Any]:
    shared = {name: value for name in _KEPT if (value := getattr(target.config, name, None)) is not None}
    return shared | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "rope_theta": target.config.rope_parameters["rope_theta"],
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
        "draft_vocab_size": draft_vocabulary,
        "fc_norm": True,
        "num_aux_hidden_states": len(target.depths),
        "eagle_aux_hidden_state_layer_ids": target.depths,
        "specdeck_target": model.identity,
    }
