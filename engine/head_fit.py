"""Whether an EAGLE head fits its target, by the two configs. vLLM would load both for half a minute and then fail over
the shapes of tensors."""

from __future__ import annotations

from typing import Any, Final

from engine.records import Method

HEAD_METHODS: Final[frozenset[Method]] = frozenset({"eagle", "eagle3"})

Config = dict[str, Any]


def misfit(head: Config, target: Config) -> str | None:
    """What keeps a head from serving a target, None when nothing does. What a config leaves out is not judged."""
    target = _text_part(target)
    faults = [
        _unequal("hidden_size", head.get("target_hidden_size") or head.get("hidden_size"), target.get("hidden_size")),
        _unequal("vocab_size", head.get("vocab_size"), target.get("vocab_size")),
        _too_deep(_layers_read(head), target.get("num_hidden_layers")),
    ]
    return "; ".join(fault for fault in faults if fault) or None


def _text_part(target: Config) -> Config:
    """A model that also sees or hears keeps its language model's config inside."""
    inner = target.get("text_config")
    return inner if isinstance(inner, dict) else target


def _unequal(name: str, head: Any, target: Any) -> str | None:
    if isinstance(head, int) and isinstance(target, int) and head != target:
        return f"its {name} is {head}, the target's {target}"
    return None


def _layers_read(head: Config) -> list[int]:
    """Layers of the target whose outputs an EAGLE-3 head takes in; vLLM looks in both places."""
    inner = head.get("eagle_config")
    found = head.get("eagle_aux_hidden_state_layer_ids")
    if not found and isinstance(inner, dict):
        found = inner.get("eagle_aux_hidden_state_layer_ids")
    return [layer for layer in found if isinstance(layer, int)] if isinstance(found, list) else []


def _too_deep(layers: list[int], depth: Any) -> str | None:
    """The target's own depth names the state after its last layer."""
    if layers and isinstance(depth, int) and max(layers) > depth:
        return f"it reads layer {max(layers)}, the target has {depth}"
    return None
