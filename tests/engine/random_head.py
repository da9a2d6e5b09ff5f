"""A random EAGLE-3 head for the bundled target: its drafts are worthless, but it must load, run and be counted."""

from __future__ import annotations

import json
from pathlib import Path


def write_random_head(target: Path, out: Path, seed: int = 0) -> Path:
    """Write a one-layer EAGLE-3 head with an 8,192-token draft vocabulary in vLLM's layout."""
    import torch
    from safetensors.torch import save_file

    config = json.loads((target / "config.json").read_text())
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    width, vocabulary, draft_vocabulary = hidden // heads, config["vocab_size"], 8192
    layers = [2, 12, 21, config["num_hidden_layers"]]
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> torch.Tensor:
        return (torch.randn(*shape, generator=generator) * 0.02).to(torch.bfloat16)

    def ones() -> torch.Tensor:
        return torch.ones(hidden, dtype=torch.bfloat16)

    kept = torch.arange(draft_vocabulary) * (vocabulary // draft_vocabulary)
    weights = {
        "fc.weight": noise(hidden, hidden * len(layers)),
        "midlayer.self_attn.q_proj.weight": noise(heads * width, 2 * hidden),
        "midlayer.self_attn.k_proj.weight": noise(kv_heads * width, 2 * hidden),
        "midlayer.self_attn.v_proj.weight": noise(kv_heads * width, 2 * hidden),
        "midlayer.self_attn.o_proj.weight": noise(hidden, heads * width),
        "midlayer.mlp.gate_proj.weight": noise(inner, hidden),
        "midlayer.mlp.up_proj.weight": noise(inner, hidden),
        "midlayer.mlp.down_proj.weight": noise(hidden, inner),
        "midlayer.hidden_norm.weight": ones(),
        "midlayer.input_layernorm.weight": ones(),
        "midlayer.post_attention_layernorm.weight": ones(),
        "norm.weight": ones(),
        "lm_head.weight": noise(draft_vocabulary, hidden),
        "d2t": kept - torch.arange(draft_vocabulary),
        "t2d": torch.zeros(vocabulary, dtype=torch.bool).index_fill_(0, kept, True),
    }
    weights |= {f"fc_norm.{place}.weight": ones() for place in range(len(layers))}
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights, str(out / "model.safetensors"))
    head = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": 1,
        "vocab_size": vocabulary,
        "draft_vocab_size": draft_vocabulary,
        "fc_norm": True,
        "num_aux_hidden_states": len(layers),
        "eagle_aux_hidden_state_layer_ids": layers,
        "max_position_embeddings": config["max_position_embeddings"],
        "rms_norm_eps": config["rms_norm_eps"],
        "rope_theta": config.get("rope_theta", 100000),
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": config.get("bos_token_id"),
        "eos_token_id": config.get("eos_token_id"),
    }
    (out / "config.json").write_text(json.dumps(head, indent=1))
    return out
