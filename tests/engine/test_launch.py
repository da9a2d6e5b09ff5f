"""An engine's description becomes the command that starts it, or an error that names the field."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console.station.options import StationOptions
from engine import launch
from engine.cached_folder import STAMP_NAME, Stamp
from engine.drafter import shipped
from engine.hardware import processor
from engine.head_fit import misfit
from engine.launch import EngineSpec, SpecError, command, method_of, preflight, settled, validate
from engine.models import BUNDLED_KIND, ModelError, ModelPath

TARGET = ModelPath(
    path="/models/t", name="t", local=True, fingerprint="ab" * 8, dtype="bfloat16", max_position_embeddings=8192
)
NGRAM = EngineSpec(drafter="ngram")
TARGET_CONFIG = {"hidden_size": 576, "vocab_size": 49152, "num_hidden_layers": 30}


@pytest.fixture
def target(tmp_path: Path) -> ModelPath:
    """A target with a config to be looked into, of the bundled model's shape."""
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "config.json").write_bytes(msgspec.json.encode(TARGET_CONFIG))
    return msgspec.structs.replace(TARGET, path=str(tmp_path / "target"))


@pytest.fixture(autouse=True)
def cpu_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "installed_device", lambda: "cpu")
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "cache"))


def option(argv: list[str], name: str) -> str:
    return argv[argv.index(name) + 1]


def speculation(argv: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(option(argv, "--speculative-config"))
    return config


def make_drafter(folder: Path, architecture: str, **config: object) -> Path:
    folder.mkdir()
    (folder / "config.json").write_bytes(msgspec.json.encode({"architectures": [architecture], **config}))
    (folder / "weights.bin").write_bytes(b"w" * 100)
    return folder


def test_the_default_engine_is_the_bundled_model_with_its_head(tmp_path: Path, target: ModelPath) -> None:
    argv, env = command(EngineSpec(), tmp_path, target)
    assert speculation(argv) == {
        "method": "eagle3",
        "num_speculative_tokens": 4,
        "model": str(shipped.head_dir()),
        "num_speculative_tokens_per_batch_size": [[1, 32, 4]],
    }
    assert env["SPECDECK_DRAFTER"].startswith("SmolLM2-135M-eagle3@")
    assert env["HF_HUB_OFFLINE"] == "1"


def test_an_ngram_engine_on_a_unix_socket(tmp_path: Path) -> None:
    argv, env = command(NGRAM, tmp_path, TARGET)
    assert option(argv, "--model") == "/models/t"
    assert option(argv, "--uds") == str(tmp_path / "vllm")
    assert option(argv, "--scheduler-cls") == "engine.scheduler.build"
    assert option(argv, "--served-model-name") == "t"
    assert option(argv, "--max-model-len") == "2048"
    assert speculation(argv) == {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 4,
        "num_speculative_tokens_per_batch_size": [[1, 32, 4]],
    }
    assert "--per-request-spec-decode-metrics" not in argv
    assert env["SPECDECK_SOCKET"] == str(tmp_path / "telemetry")
    assert env["SPECDECK_ENGINE"] == "e0"
    assert env["SPECDECK_TARGET"] == TARGET.identity
    assert env["SPECDECK_DRAFTER"] == "ngram"
    assert env["SPECDECK_HARDWARE"] == processor("cpu")
    assert (env["HF_HUB_OFFLINE"], env["PYTHONSAFEPATH"], env["VLLM_NO_USAGE_STATS"]) == ("1", "1", "1")
    assert env["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert "OMP_NUM_THREADS" not in env or env["OMP_NUM_THREADS"] == os.environ["OMP_NUM_THREADS"]


def test_openmp_is_preloaded_beside_what_the_operator_preloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "openmp_library", lambda: Path("/env/lib/libiomp5.so"))
    _, env = command(NGRAM, tmp_path, TARGET, inherit={"LD_PRELOAD": "/lib/own.so"})
    assert env["LD_PRELOAD"] == "/lib/own.so:/env/lib/libiomp5.so"
    _, env = command(NGRAM, tmp_path, TARGET, inherit={"LD_PRELOAD": "/other/libiomp5.so"})
    assert env["LD_PRELOAD"] == "/other/libiomp5.so"
    _, env = command(NGRAM, tmp_path, TARGET, inherit={"LD_PRELOAD": "/own.so:/torch/libgomp-1.so.1"})
    assert env["LD_PRELOAD"] == "/own.so:/env/lib/libiomp5.so", "vLLM refuses to start with both"


def test_a_gpu_engine_gets_neither_preload_nor_cpu_cache(tmp_path: Path) -> None:
    _, env = command(EngineSpec(device="cuda", drafter="ngram"), tmp_path, TARGET, inherit={})
    assert "LD_PRELOAD" not in env
    assert "VLLM_CPU_KVCACHE_SPACE" not in env


def test_an_engine_without_speculation_has_no_speculative_config(tmp_path: Path) -> None:
    argv, env = command(EngineSpec(drafter="none", max_k=0), tmp_path, TARGET)
    assert "--speculative-config" not in argv
    assert env["SPECDECK_DRAFTER"] == "none"


def test_a_second_engine_has_its_own_socket_rpc_directory_and_threads(tmp_path: Path) -> None:
    argv, env = command(EngineSpec(engine="e1", threads=1, drafter="ngram"), tmp_path, TARGET)
    first_argv, first_env = command(NGRAM, tmp_path, TARGET)
    assert option(argv, "--uds") != option(first_argv, "--uds")
    assert env["VLLM_RPC_BASE_PATH"] != first_env["VLLM_RPC_BASE_PATH"]
    assert (env["OMP_NUM_THREADS"], env["VLLM_CPU_OMP_THREADS_BIND"]) == ("1", "nobind")
    assert env["SPECDECK_HARDWARE"].endswith(", 1 threads")


def test_data_parallel_engines_get_no_table_which_vllm_would_drop(tmp_path: Path) -> None:
    argv, _ = command(EngineSpec(data_parallel_size=2, drafter="ngram"), tmp_path, TARGET)
    assert "num_speculative_tokens_per_batch_size" not in speculation(argv)


def test_vllms_own_sockets_stay_under_the_kernels_limit_in_a_long_runtime_dir(tmp_path: Path) -> None:
    long = tmp_path / ("d" * 70)
    long.mkdir()
    assert len(str(launch.rpc_dir("e7", long))) + 37 <= 107
    assert launch.rpc_dir("e7", long).stat().st_mode & 0o777 == 0o700


def test_sockets_of_a_killed_engine_are_cleared(tmp_path: Path) -> None:
    (tmp_path / "vllm").touch()
    (launch.rpc_dir("e0", tmp_path) / "2f1d").touch()
    launch.clear_remains(EngineSpec(), tmp_path)
    assert not (tmp_path / "vllm").exists()
    assert list(launch.rpc_dir("e0", tmp_path).iterdir()) == []


def test_openmp_marks_of_dead_processes_are_cleared_and_living_ones_kept(tmp_path: Path) -> None:
    living, dead = f"__KMP_REGISTERED_LIB_{os.getpid()}_0", "__KMP_REGISTERED_LIB_4194305_0"
    for name in (living, dead, "other"):
        (tmp_path / name).touch()
    launch._clear_openmp_marks(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([living, "other"])


@pytest.mark.parametrize(
    ("architecture", "method"),
    [
        ("LlamaForCausalLMEagle3", "eagle3"),
        ("Eagle3LlamaForCausalLM", "eagle3"),
        ("EagleLlamaForCausalLM", "eagle"),
        ("MedusaModel", "medusa"),
        ("LlamaForCausalLM", "draft_model"),
    ],
)
def test_a_drafter_folder_says_its_method(tmp_path: Path, target: ModelPath, architecture: str, method: str) -> None:
    folder = make_drafter(tmp_path / "drafter", architecture)
    argv, env = command(EngineSpec(drafter=str(folder), max_k=2), tmp_path, target)
    assert (speculation(argv)["method"], speculation(argv)["model"]) == (method, str(folder))
    assert env["SPECDECK_DRAFTER"].startswith("drafter@")


def test_a_class_path_is_a_custom_proposer(tmp_path: Path) -> None:
    argv, env = command(EngineSpec(drafter="tests.proposers.Oracle"), tmp_path, TARGET)
    assert (speculation(argv)["method"], speculation(argv)["model"]) == ("custom_class", "tests.proposers.Oracle")
    assert env["SPECDECK_DRAFTER"] == "tests.proposers.Oracle"


def test_suffix_and_ngram_gpu_keep_a_constant_table(tmp_path: Path) -> None:
    for drafter in ("suffix", "ngram_gpu"):
        config = speculation(command(EngineSpec(drafter=drafter), tmp_path, TARGET).argv)
        assert config["num_speculative_tokens_per_batch_size"] == [[1, 32, 4]]


def test_a_hub_model_that_vllm_must_fetch_is_not_started_offline(tmp_path: Path) -> None:
    remote = ModelPath(path="org/m", name="org/m", local=False)
    argv, env = command(EngineSpec(model="org/m"), tmp_path, remote, inherit={})
    assert "HF_HUB_OFFLINE" not in env
    assert "--max-model-len" not in argv


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (EngineSpec(engine="../e"), "engine: "),
        (EngineSpec(max_k=0), "max_k: 0 must be 1 or more; for an engine without speculation give drafter none"),
        (EngineSpec(max_num_seqs=0), "max_num_seqs: "),
        (EngineSpec(max_model_len=0), "max_model_len: "),
        (EngineSpec(threads=0), "threads: "),
        (EngineSpec(drafter=" "), "drafter: empty"),
        (EngineSpec(method="magic"), "method: 'magic' is none of"),  # type: ignore[arg-type]
        (EngineSpec(prompt_lookup_min=5, prompt_lookup_max=2), "prompt_lookup_max: "),
        (EngineSpec(drafter="none", per_request_metrics="detailed"), "per_request_metrics: "),
        (EngineSpec(extra_args=("--uds=/tmp/x",)), "extra_args: --uds is set by specdeck"),
        (EngineSpec(extra_args=("--scheduler_cls", "x")), "extra_args: --scheduler-cls"),
    ],
)
def test_a_wrong_spec_names_its_field(spec: EngineSpec, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        validate(spec)


def test_contradicting_method_and_drafter_are_refused() -> None:
    with pytest.raises(SpecError, match="method: eagle needs a drafter model"):
        method_of(EngineSpec(drafter="ngram", method="eagle"))
    with pytest.raises(SpecError, match="drafter: method ngram has no drafter of its own"):
        method_of(EngineSpec(drafter="/models/x", method="ngram"))


def test_a_context_longer_than_the_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="max_model_len: 9000 exceeds the 8192 tokens of t"):
        command(EngineSpec(max_model_len=9000, drafter="ngram"), tmp_path, TARGET)


# The drafter that nobody chose


def stamped(folder: Path) -> str:
    """A folder that passes for a conversion of the bundled model."""
    folder.mkdir()
    stamp = Stamp(BUNDLED_KIND.version, source_sha256="", fingerprint="", files={}, versions={})
    (folder / STAMP_NAME).write_bytes(msgspec.json.encode(stamp))
    return str(folder)


def test_auto_is_the_bundled_head_on_the_bundled_model_and_ngram_elsewhere(tmp_path: Path) -> None:
    assert settled(EngineSpec()).drafter == "bundled"
    assert settled(EngineSpec(model=stamped(tmp_path / "moved"))).drafter == "bundled"
    assert settled(EngineSpec(model="org/m")).drafter == "ngram"
    assert settled(EngineSpec(method="suffix")).drafter == "suffix", "a method without a drafter names it"
    assert settled(NGRAM) is NGRAM


def test_what_a_station_starts_and_shows_is_never_auto() -> None:
    assert StationOptions(store="s").engine_spec().drafter == "bundled"
    assert StationOptions(store="s", model="org/m").engine_spec().drafter == "ngram"


@pytest.mark.parametrize("drafter", shipped.NAMES)
def test_a_bundled_head_is_an_eagle3_head_for_the_bundled_model_alone(drafter: str) -> None:
    assert method_of(EngineSpec(drafter=drafter)) == "eagle3"
    assert method_of(EngineSpec(drafter=drafter, method="eagle3")) == "eagle3"
    with pytest.raises(SpecError, match="trained for the bundled model, not for org/m; give drafter ngram, or a head"):
        method_of(EngineSpec(model="org/m", drafter=drafter))
    with pytest.raises(SpecError, match="method: eagle, but"):
        method_of(EngineSpec(drafter=drafter, method="eagle"))


# Heads and targets that do not belong together


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"hidden_size": 1024}, "its hidden_size is 1024, the target's 576"),
        ({"hidden_size": 1024, "target_hidden_size": 576}, None),
        ({"hidden_size": 576, "target_hidden_size": 1024}, "its hidden_size is 1024"),
        ({"vocab_size": 32000}, "its vocab_size is 32000, the target's 49152"),
        ({"eagle_aux_hidden_state_layer_ids": [2, 16, 31]}, "it reads layer 31, the target has 30"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [40]}}, "it reads layer 40"),
        ({"eagle_aux_hidden_state_layer_ids": [2, 16, 30], "hidden_size": 576, "vocab_size": 49152}, None),
        ({"hidden_size": "wide", "eagle_aux_hidden_state_layer_ids": "all"}, None),
        ({}, None),
    ],
)
def test_a_head_of_another_shape_is_refused_before_the_engine_starts(
    tmp_path: Path, target: ModelPath, config: dict[str, Any], says: str | None
) -> None:
    folder = make_drafter(tmp_path / "head", "LlamaForCausalLMEagle3", **config)
    spec = EngineSpec(drafter=str(folder))
    if says is None:
        command(spec, tmp_path, target)
        return
    with pytest.raises(SpecError, match=f"drafter: head does not fit the target t: .*{says}.*trained for this target"):
        command(spec, tmp_path, target)


def test_a_target_that_also_sees_is_judged_by_its_language_part() -> None:
    assert misfit({"hidden_size": 576}, {"text_config": TARGET_CONFIG, "hidden_size": 64}) is None


def test_a_misfit_is_refused_on_the_command_line_where_both_are_at_hand(tmp_path: Path, target: ModelPath) -> None:
    folder = make_drafter(tmp_path / "head", "LlamaForCausalLMEagle3", hidden_size=1024)
    preflight(EngineSpec(drafter=str(folder)))  # the bundled model is not converted yet: the start will see
    (Path(target.path) / "weights.bin").write_bytes(b"w" * 100)
    with pytest.raises(SpecError, match="does not fit the target"):
        preflight(EngineSpec(model=target.path, drafter=str(folder)))


def test_a_missing_bundled_head_is_said_with_the_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "head_dir", lambda: tmp_path / "none")
    with pytest.raises(ModelError, match=r"lacks model\.safetensors and config\.json: .*pip install --force-reinstall"):
        preflight(EngineSpec())
