"""Random EAGLE heads for the bundled target: their drafts are worthless, but they must load, run and be counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DRAFT_VOCABULARY = 8192


def write_random_head(target: Path, out: Path, method: str, seed: int = 0) -> Path:
    """Write a one-layer head in vLLM's layout: `eagle3` with a small draft vocabulary of its own, `eagle` without."""
    import torch
    from safetensors.torch import save_file

    config = json.loads((target / "config.json").read_text())
    generator = torch.Generator().manual_seed(seed)
    weights = _eagle3_weights(config, generator) if method == "eagle3" else _eagle_weights(config, generator)
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights, str(out / "model.safetensors"))
    (out / "config.json").write_text(json.dumps(_head_config(config, method), indent=1))
    return out


def _layers(config: dict[str, Any]) -> list[int]:
    return [2, 12, 21, config["num_hidden_layers"]]


def _layer(config: dict[str, Any], prefix: str, width: int, generator: Any) -> dict[str, Any]:
    """The weights of one decoder layer whose attention reads `width` features."""
    import torch

    hidden, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    values = hidden // heads * config["num_key_value_heads"]
    shapes = {
        "self_attn.q_proj": (hidden, width),
        "self_attn.k_proj": (values, width),
        "self_attn.v_proj": (values, width),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    weights = {f"{prefix}.{name}.weight": _noise(shape, generator) for name, shape in shapes.items()}
    return weights | {f"{prefix}.post_attention_layernorm.weight": torch.ones(hidden, dtype=torch.bfloat16)}


def _eagle3_weights(config: dict[str, Any], generator: Any) -> dict[str, Any]:
    import torch

    hidden, vocabulary, layers = config["hidden_size"], config["vocab_size"], _layers(config)
    ones = torch.ones(hidden, dtype=torch.bfloat16)
    kept = torch.arange(DRAFT_VOCABULARY) * (vocabulary // DRAFT_VOCABULARY)
    weights = _layer(config, "midlayer", 2 * hidden, generator) | {
        "fc.weight": _noise((hidden, hidden * len(layers)), generator),
        "midlayer.hidden_norm.weight": ones.clone(),
        "midlayer.input_layernorm.weight": ones.clone(),
        "norm.weight": ones.clone(),
        "lm_head.weight": _noise((DRAFT_VOCABULARY, hidden), generator),
        "d2t": kept - torch.arange(DRAFT_VOCABULARY),
        "t2d": torch.zeros(vocabulary, dtype=torch.bool).index_fill_(0, kept, True),
    }
    return weights | {f"fc_norm.{place}.weight": ones.clone() for place in range(len(layers))}


def _eagle_weights(config: dict[str, Any], generator: Any) -> dict[str, Any]:
    hidden = config["hidden_size"]
    return _layer(config, "layers.0", hidden, generator) | {"fc.weight": _noise((hidden, 2 * hidden), generator)}


def _noise(shape: tuple[int, ...], generator: Any) -> Any:
    import torch

    return (torch.randn(*shape, generator=generator) * 0.02).to(torch.bfloat16)


def _head_config(config: dict[str, Any], method: str) -> dict[str, Any]:
    kept = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size")
    kept += ("max_position_embeddings", "rms_norm_eps", "bos_token_id", "eos_token_id")
    head = {name: config.get(name) for name in kept} | {
        "model_type": "llama",
        "num_hidden_layers": 1,
        "rope_theta": config.get("rope_theta", 100000),
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }
    if method == "eagle":
        return head | {"architectures": ["EagleLlamaForCausalLM"]}
    return head | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": DRAFT_VOCABULARY,
        "fc_norm": True,
        "num_aux_hidden_states": len(_layers(config)),
        "eagle_aux_hidden_state_layer_ids": _layers(config),
    }
