"""Three faults of vLLM on a CPU, found by self-test and repaired where they are; nothing else is ever patched.

vLLM loads `apply` in each of its processes (entry point `vllm.general_plugins`). It waits until the model runner is
imported, which only workers do, and tests then: a later vLLM that is sound is left alone.

1. `expand_batch_to_tokens` fills a copy of its output, so under speculation temperature, top-k and top-p of sampled
   requests are uninitialised memory.
2. A seeded request whose prefill is chunked ends the engine: the runner takes back the draw of a discarded sample by
   moving the generator's offset, which a CPU generator does not have.
3. A sampled request with `top_k` alone ends an engine that speculates, in the first step without any draft (its own
   prefill will do): the rejection sampler then has no rows, and `apply_top_k_only` takes the largest k of none.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import logging
import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple

_SAMPLER: Final = "vllm.v1.sample.rejection_sampler"
_RUNNER: Final = "vllm.v1.worker.gpu_model_runner"
_BATCH: Final = "vllm.v1.worker.gpu_input_batch"
_TOP_K: Final = "vllm.v1.sample.ops.topk_topp_sampler"

SAMPLING: Final = "sampling under speculation"
SEEDS: Final = "seeded request with a chunked prefill"
TOP_K: Final = "top_k in a step without drafts"

PATCHED: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    (_SAMPLER, "expand_batch_to_tokens", ("x", "cu_num_tokens", "num_tokens", "replace_from", "replace_to")),
    (_RUNNER, "GPUModelRunner._sample", ("self", "logits", "spec_decode_metadata")),
    (
        _RUNNER,
        "GPUModelRunner._bookkeeping_sync",
        ("self", "scheduler_output", "sampler_output", "logits", "hidden_states", "num_scheduled_tokens"),
    ),
    (_BATCH, "CachedRequestState.__init__", ("self", "req_id", "generator")),
    (_TOP_K, "apply_top_k_only", ("logits", "k")),
)
"""What is tested and replaced: module, name, and parameters that it must have. `moved` compares."""

logger = logging.getLogger("vllm.specdeck")
"""A child of vLLM's logger, so that the lines stand in the engine's log."""


class Fault(NamedTuple):
    name: str
    present: bool
    repaired: bool
    detail: str


def apply() -> None:
    """Entry point: have the faults repaired as soon as this process imports the model runner. Does nothing on a GPU."""
    if _on_cpu():
        _after_import(_RUNNER, _repair_and_report)


def faults() -> list[Fault]:
    """Test for all of them, repair those present, test again. Imports the model runner (seconds): for `doctor`."""
    if not _on_cpu():
        return []
    _register_cpu_kernels()
    importlib.import_module(_RUNNER)
    return _repair_all()


def moved() -> list[str]:
    """What of `PATCHED` the installed vLLM no longer has as expected, one line each. Imports the model runner."""
    lines = []
    for module, name, parameters in PATCHED:
        try:
            found = inspect.signature(_lookup(module, name), follow_wrapped=True).parameters
        except (ImportError, AttributeError) as error:
            lines.append(f"{module}.{name}: gone ({error})")
            continue
        missing = [parameter for parameter in parameters if parameter not in found]
        if missing:
            lines.append(f"{module}.{name}: has {', '.join(found)}; missing {', '.join(missing)}")
    return lines


def _repair_and_report() -> None:
    for fault in _repair_all():
        if fault.present:
            level = logging.INFO if fault.repaired else logging.ERROR
            logger.log(level, "specdeck: %s: %s", "repaired" if fault.repaired else "NOT repaired", fault.detail)


def _repair_all() -> list[Fault]:
    gone = moved()
    if gone:
        detail = "vLLM has moved: " + "; ".join(gone)
        logger.warning("specdeck: the CPU faults were not looked for: %s", detail)
        return [Fault(name, present=False, repaired=False, detail=detail) for name in (SAMPLING, SEEDS, TOP_K)]
    return [
        _repair(SAMPLING, _expansion_is_broken, _repair_expansion, "expand_batch_to_tokens returned wrong values"),
        _repair(SEEDS, _rewinding_is_broken, _repair_rewinding, "CPU generators could not take a draw back"),
        _repair(TOP_K, _top_k_is_broken, _repair_top_k, "apply_top_k_only failed on a batch of no rows"),
    ]


def _repair(name: str, broken: Callable[[], bool], repair: Callable[[], None], detail: str) -> Fault:
    """Test, repair, test again. What was repaired before counts as present and repaired."""
    was_repaired = name in _repaired
    if not was_repaired and not broken():
        return Fault(name, present=False, repaired=False, detail="sound in this vLLM")
    if not was_repaired:
        repair()
        _repaired.add(name)
    still = broken()
    return Fault(
        name, present=True, repaired=not still, detail=f"{name}: {detail}" + (" and still does" if still else "")
    )


_repaired: set[str] = set()


# Fault 1


def expand_batch_to_tokens(
    x: Any, cu_num_tokens: Any, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> Any:
    """[batch] to [num_tokens]: each value as often as its request has tokens, `replace_from` becoming `replace_to`.

    Args:
        x: tensor [batch] of any type.
        cu_num_tokens: integer tensor [batch], cumulative token counts.
    """
    import torch

    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
    return x.masked_fill(x == replace_from, replace_to).repeat_interleave(counts, output_size=num_tokens)


def _expansion_is_broken() -> bool:
    import torch

    expand = _lookup(_SAMPLER, "expand_batch_to_tokens")
    ends = torch.tensor([2, 5, 5, 6], dtype=torch.int32)
    for values, dtype in (
        ([0.8, 0.0, 0.3, 1.5], torch.float32),
        ([20, 0, 7, 49152], torch.int32),
        ([20, 0, 7, 2**40], torch.int64),
        ([True, False, False, True], torch.bool),
    ):
        x = torch.tensor(values, dtype=dtype)
        for replacement in (0, 1):
            expected = expand_batch_to_tokens(x, ends, 6, 0, replacement)
            try:
                if not torch.equal(expand(x, ends, 6, 0, replacement), expected):
                    return True
            except (RuntimeError, TypeError, AssertionError):
                return True
    return False


def _repair_expansion() -> None:
    # Its callers look the name up in their own module, so replacing it there reaches them all.
    importlib.import_module(_SAMPLER).expand_batch_to_tokens = expand_batch_to_tokens  # type: ignore[attr-defined]


# Fault 2


def rewindable(generator: Any) -> Any:
    """A CPU generator in the same state that can take its last sampling step back, by the calls a CUDA one has."""
    copy = _rewindable_class()(device="cpu")
    copy.set_state(generator.get_state())
    return copy


@cache
def _rewindable_class() -> type[Any]:
    import torch

    class RewindableGenerator(torch.Generator):  # type: ignore[misc]  # torch is untyped here
        """`mark` remembers the state before a step; `set_offset`, called for a discarded sample, returns to it."""

        marked: Any = None

        def mark(self) -> None:
            self.marked = self.get_state()

        def get_offset(self) -> int:
            return 0

        def set_offset(self, offset: int) -> None:
            if self.marked is not None:
                self.set_state(self.marked)

    return RewindableGenerator


def _rewinding_is_broken() -> bool:
    """Let the runner discard the sample of one seeded request, and look only at how it treats the generator."""
    import numpy
    import torch

    state = _lookup(_BATCH, "CachedRequestState")(
        req_id="self-test", prompt_token_ids=[0], mm_features=[], sampling_params=None,
        generator=torch.Generator(device="cpu"), block_ids=(), num_computed_tokens=0, output_token_ids=[],
    )  # fmt: skip
    runner = SimpleNamespace(
        input_batch=SimpleNamespace(num_reqs=1, generators={0: state.generator}),
        discard_request_mask=SimpleNamespace(np=numpy.ones(1, dtype=bool)),
        use_async_scheduling=False,
    )
    try:
        _lookup(_RUNNER, "GPUModelRunner._bookkeeping_sync")(runner, None, None, None, None, 0)
    except RuntimeError as error:
        return "offset" in str(error)
    except Exception:
        return False  # it came past the generator to what the stand-in runner does not have
    return False


def _repair_rewinding() -> None:
    state_class = _lookup(_BATCH, "CachedRequestState")
    runner_class = _lookup(_RUNNER, "GPUModelRunner")
    state_class.__init__ = _with_rewindable_generator(state_class.__init__)
    runner_class._sample = _marking_before(runner_class._sample)


def _with_rewindable_generator(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        generator = self.generator
        if generator is not None and generator.device.type == "cpu" and not hasattr(generator, "mark"):
            self.generator = rewindable(generator)

    return wrapped


def _marking_before(sample: Callable[..., Any]) -> Callable[..., Any]:
    """`_sample`, marking first the generators of the requests whose sample will be discarded."""

    @wraps(sample)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        generators = self.input_batch.generators
        if generators:
            discarded = self.discard_request_mask.np[: self.input_batch.num_reqs]
            for index, generator in generators.items():
                if discarded[index] and hasattr(generator, "mark"):
                    generator.mark()
        return sample(self, *args, **kwargs)

    return wrapped


# Fault 3


def _top_k_is_broken() -> bool:
    import torch

    try:
        _lookup(_TOP_K, "apply_top_k_only")(torch.empty(0, 8), torch.empty(0, dtype=torch.int32))
    except (RuntimeError, IndexError):
        return True
    return False


def _repair_top_k() -> None:
    # Its caller, in the same module, looks the name up there.
    module: Any = importlib.import_module(_TOP_K)
    module.apply_top_k_only = nothing_of_nothing(module.apply_top_k_only)


def nothing_of_nothing(mask: Callable[..., Any]) -> Callable[..., Any]:
    """`mask(logits, k)`, leaving logits of no rows [0, vocabulary] as they are."""

    @wraps(mask)
    def wrapped(logits: Any, k: Any) -> Any:
        return mask(logits, k) if len(logits) else logits

    return wrapped


# Reaching vLLM


def _on_cpu() -> bool:
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


def _register_cpu_kernels() -> None:
    """What a worker does before it imports its model runner: without it the function under test is another."""
    from vllm.platforms import current_platform

    current_platform.register_triton_kernel_overrides()


def _lookup(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _after_import(module: str, callback: Callable[[], None]) -> None:
    """Call `callback` once `module` has been imported: at once, or right after its own code has run."""
    present = sys.modules.get(module)
    if present is not None and not getattr(present.__spec__, "_initializing", False):
        _call_safely(callback)
    elif not any(isinstance(finder, _AfterImport) and finder.module == module for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport(module, callback))


class _AfterImport:
    """A finder that steps aside for the real one and adds a call after the module's own code."""

    def __init__(self, module: str, callback: Callable[[], None]) -> None:
        self.module = module
        self.callback = callback

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _call_safely(self.callback)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _call_safely(callback: Callable[[], None]) -> None:
    """A repair that fails must be loud and must not end the engine."""
    try:
        callback()
    except Exception:
        logger.exception("specdeck: looking for the CPU faults failed; sampled output may be wrong")


def main() -> int:
    """`python -m engine.cpu_faults`: the last line of stdout is JSON, a list of [name, present, repaired, detail]."""
    found = faults()
    print(json.dumps(found))
    return 0 if all(fault.repaired for fault in found if fault.present) else 1


if __name__ == "__main__":
    sys.exit(main())
