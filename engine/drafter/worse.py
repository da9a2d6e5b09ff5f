"""A worse version of the shipped head, for traces and tests: its matrices with seeded noise on them.

Made once into the cache, in under a second. The same noise on the same head gives the same bytes, so it is one version
with one fingerprint. `python -m engine.drafter.worse OUT [NOISE]` writes one elsewhere, to find the right strength.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine import weights
from engine.cached_folder import Kind, ModelError, Say, install
from engine.drafter import shipped
from engine.places import cache_dir

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NOISE: Final = 0.4
"""Standard deviation of the noise on a matrix, relative to that of its own elements. Costs the shipped head 10 to 14
points of acceptance at the first draft position, on every kind of held-out prompts."""

SEED: Final = 3

KIND: Final = Kind(
    name=shipped.WORSE, version=1, what="the worse version of the bundled head", space=80 << 20, packages=()
)

_CARD: Final = """# {name}

The head that comes with specdeck, made worse on purpose for traces and tests: seeded noise of {noise:g} times its own
standard deviation on each of its matrices (`engine/drafter/worse.py`). Not for use.
"""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        out, noise = Path(arguments[0]), float(arguments[1]) if arguments[1:] else NOISE
    except (IndexError, ValueError):
        print(
            "usage: python -m engine.drafter.worse OUT [NOISE]    (OUT: a folder that is not there yet)",
            file=sys.stderr,
        )
        return 2
    try:
        source = _source()
        out.mkdir(parents=True)
        write(source, out, noise)
    except (ModelError, OSError) as error:
        print(f"specdeck: {error}", file=sys.stderr)
        return 1
    print(out)
    return 0


def made(say: Say) -> Path:
    """The worse version's folder in the cache, made when it must be.

    Raises:
        ModelError: the shipped head is missing or damaged, or the cache cannot take it.
    """
    source = _source()
    with _damage_named():
        fingerprint = weights.fingerprint(source.parent)
    try:
        out = cache_dir() / "models" / f"{shipped.WORSE_NAME}-{fingerprint}-n{NOISE:g}"
        install(out, KIND, lambda: source, write, say)
    except OSError as error:
        raise ModelError(f"{KIND.what}: {error}; make room there, or set SPECDECK_CACHE_DIR") from error
    return out


def write(source: Path, folder: Path, noise: float = NOISE) -> None:
    """Write the worse version of the head whose weights are `source` into `folder`, which exists.

    Raises:
        ModelError: the weights are damaged.
    """
    with _damage_named():
        content = disturbed(source, noise)
    (folder / shipped.WEIGHTS).write_bytes(content)
    shutil.copyfile(source.with_name("config.json"), folder / "config.json")
    (folder / "README.md").write_text(_CARD.format(name=shipped.WORSE_NAME, noise=noise))


def _source() -> Path:
    return shipped.head() / shipped.WEIGHTS


@contextmanager
def _damage_named() -> Iterator[None]:
    """Raises ModelError with the way back where the shipped weights cannot be read."""
    try:
        yield
    except (weights.NoWeightsError, OSError) as error:
        raise ModelError(f"{error}: {shipped.REINSTALL}") from error


def disturbed(source: Path, noise: float) -> bytes:
    """The safetensors file `source` with noise on its bf16 matrices. Norms, which are vectors, and the vocabulary maps
    stay as they are. The same noise on the same file gives the same bytes.

    Raises:
        NoWeightsError: the file is damaged.
    """
    import numpy as np  # a tenth of a second that only the maker should pay

    tensors = weights.tensors(source)
    content = bytearray(source.read_bytes())
    generator = np.random.RandomState(SEED)  # its streams are the same in every numpy
    for tensor in tensors:
        if tensor.dtype == "BF16" and len(tensor.shape) > 1:
            bits = np.frombuffer(content, "<u2", count=(tensor.end - tensor.start) // 2, offset=tensor.start)
            bits[:] = _noisy(bits, noise, generator)
    return bytes(content)


def _noisy(bits: npt.NDArray[np.uint16], noise: float, generator: Any) -> npt.NDArray[np.uint16]:
    """bf16 is the upper half of float32; back to it by rounding to the nearest, ties to even."""
    import numpy as np

    values = (bits.astype(np.uint32) << 16).view(np.float32)
    spread = noise * values.std(dtype=np.float64)
    noisy: npt.NDArray[np.float32] = (values + spread * generator.standard_normal(values.size)).astype(np.float32)
    whole = noisy.view(np.uint32)
    return ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16).astype(np.uint16)


if __name__ == "__main__":
    sys.exit(main())
