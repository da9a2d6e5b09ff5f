"""Makes the bundled model: `python -m engine.bundled [OUT_DIR]` turns the package's GGUF into a folder that vLLM loads.

Runs in a process of its own, since it needs torch and transformers (imported when the conversion starts). The folder
appears complete or not at all (`engine.cached_folder`). Narration goes to stderr, the finished path to stdout.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from engine.cached_folder import ModelError, install
from engine.models import BUNDLED_KIND, bundled_dir, bundled_gguf

CONTEXT_LENGTH: Final = 8192
"""Tokens that the bundled model was trained for; its GGUF leaves the tokenizer's limit unset."""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: python -m engine.bundled [OUT_DIR]    (by default its place in the cache)", file=sys.stderr)
        return 2
    out = Path(arguments[0]).absolute() if arguments else bundled_dir()
    try:
        install(out, BUNDLED_KIND, bundled_gguf, convert, _say)
    except ModelError as error:
        print(f"specdeck: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"specdeck: converting the bundled model into {out}: {error}", file=sys.stderr)
        return 1
    print(out)
    return 0


def convert(gguf: Path, folder: Path) -> None:
    """Dequantise the GGUF into bf16 safetensors, with tokenizer and chat template."""
    _say("loading torch and transformers")
    os.environ["TQDM_DISABLE"] = "1"  # read at import: narration is lines, not bars
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    _say("dequantising the weights")
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    tokenizer.model_max_length = CONTEXT_LENGTH
    # Without dequantize=True the weights stay in GGUF blocks, and the model can't be saved.
    quantization = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(**source, quantization_config=quantization, dtype=torch.bfloat16)
    _say("writing the bf16 folder")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _say(text: str) -> None:
    print(f"specdeck: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
