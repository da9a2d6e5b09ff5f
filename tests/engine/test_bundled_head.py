"""The head that comes with specdeck is whole, in every wheel, and has a worse version that is always the same one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engine import cached_folder, doctor, models, weights
from engine.drafter import shipped, worse
from engine.head_fit import misfit
from engine.models import ModelError, resolve_drafter

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "cache"))


def matrices(folder: Path) -> Iterator[tuple[str, npt.NDArray[np.float32] | None, bytes]]:
    """Name, values of a bf16 matrix (None for the rest), bytes."""
    content = (folder / shipped.WEIGHTS).read_bytes()
    for tensor in weights.tensors(folder / shipped.WEIGHTS):
        part = content[tensor.start : tensor.end]
        matrix = tensor.dtype == "BF16" and len(tensor.shape) > 1
        yield tensor.name, (np.frombuffer(part, "<u2").astype("<u4") << 16).view("<f4") if matrix else None, part


# Shipped


def test_weights_config_and_card_are_there_and_small_enough() -> None:
    folder = shipped.head_dir()
    assert {path.name for path in folder.iterdir()} >= set(shipped.FILES)
    assert 1_000_000 < (folder / shipped.WEIGHTS).stat().st_size <= shipped.LARGEST
    tensors = {tensor.name: tensor for tensor in weights.tensors(folder / shipped.WEIGHTS)}
    assert {tensor.dtype for name, tensor in tensors.items() if name not in ("d2t", "t2d")} == {"BF16"}
    config = models.read_config(folder)
    assert tensors["d2t"].shape == (config["draft_vocab_size"],)
    assert tensors["t2d"].shape == (config["vocab_size"],)


@pytest.mark.engine
def test_it_fits_the_bundled_model(bundled_model: Path) -> None:
    assert misfit(models.read_config(shipped.head()), models.read_config(bundled_model)) is None


@pytest.mark.filterwarnings("ignore:pkg_resources:DeprecationWarning")  # setuptools' own
def test_a_wheel_holds_it_and_the_texts_that_it_was_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from setuptools import Distribution
    from setuptools.config.pyprojecttoml import apply_configuration

    monkeypatch.chdir(ROOT)
    build = apply_configuration(Distribution(), "pyproject.toml").get_command_obj("build_py")
    build.ensure_finalized()
    packed = {f"{source}/{name}" for _, source, _, names in build.get_data_files_without_manifest() for name in names}
    assert {f"engine/drafter/bundled/{name}" for name in shipped.FILES} <= packed
    texts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "engine/drafter/texts").glob("*.toml")}
    assert texts
    assert texts <= packed


def test_its_folder_and_its_name_are_one_identity() -> None:
    head = resolve_drafter("bundled")
    assert head.identity == f"SmolLM2-135M-eagle3@{weights.fingerprint(shipped.head_dir())}:-:bfloat16:-"
    assert resolve_drafter(str(shipped.head_dir())).identity == head.identity


def test_a_head_cut_short_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = tmp_path / "cut"
    cut.mkdir()
    for name in shipped.FILES:
        (cut / name).write_bytes((shipped.head_dir() / name).read_bytes()[:1_000_000])
    monkeypatch.setattr(shipped, "head_dir", lambda: cut)
    for drafter in shipped.NAMES:
        with pytest.raises(ModelError, match="cut short"):
            resolve_drafter(drafter)
    ok, detail, remedy = doctor._bundled_head()
    assert ok is False
    assert "cut short" in detail
    assert "--force-reinstall" in remedy


def test_the_doctor_says_which_head_it_is_and_whether_it_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert doctor._bundled_head()[:2] == (True, f"{resolve_drafter('bundled').short} in {shipped.head_dir()}")
    monkeypatch.setattr(models, "is_complete", lambda folder: True)
    monkeypatch.setattr(models, "bundled_dir", lambda: tmp_path)
    (tmp_path / "config.json").write_text('{"hidden_size": 64}')
    ok, detail, _ = doctor._bundled_head()
    assert ok is False
    assert "does not fit the bundled model: its hidden_size is 576, the target's 64" in detail


# The worse version


def test_the_worse_version_is_another_one_of_its_own_name() -> None:
    head, bad = resolve_drafter("bundled"), resolve_drafter("bundled-worse")
    assert (bad.name, bad.local) == ("SmolLM2-135M-eagle3-worse", True)
    assert bad.fingerprint != head.fingerprint
    assert models.read_config(Path(bad.path)) == models.read_config(shipped.head_dir())


def test_it_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve_drafter("bundled-worse")

    def never(*_: object) -> None:
        raise AssertionError("made twice")

    monkeypatch.setattr(worse, "write", never)
    assert resolve_drafter("bundled-worse") == first


def test_it_is_the_same_one_wherever_and_whenever_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve_drafter("bundled-worse")
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "elsewhere"))
    again = resolve_drafter("bundled-worse")
    assert again.path != first.path
    assert again.identity == first.identity


def test_another_strength_is_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve_drafter("bundled-worse")
    monkeypatch.setattr(worse, "NOISE", worse.NOISE * 2)
    assert resolve_drafter("bundled-worse").path != first.path


def test_a_damaged_one_is_made_again() -> None:
    made = resolve_drafter("bundled-worse")
    (Path(made.path) / shipped.WEIGHTS).write_bytes(b"cut")
    assert not cached_folder.is_complete(Path(made.path), worse.KIND)
    assert resolve_drafter("bundled-worse") == made


def test_a_cache_that_cannot_take_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(ModelError, match=r"worse version of the bundled head: .*set SPECDECK_CACHE_DIR"):
        resolve_drafter("bundled-worse")


def test_its_matrices_have_noise_in_proportion_and_the_rest_is_untouched() -> None:
    bad = Path(resolve_drafter("bundled-worse").path)
    for (name, was, before), (_, now, after) in zip(matrices(shipped.head_dir()), matrices(bad), strict=True):
        if was is None or now is None:
            assert after == before, name
        else:
            assert np.std(now - was) == pytest.approx(worse.NOISE * np.std(was), rel=0.05), name
            assert abs(np.mean(now - was)) < 0.05 * np.std(was), name


def test_one_can_be_written_elsewhere_to_find_the_strength(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert worse.main([str(tmp_path / "out"), "0"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "out")
    assert weights.fingerprint(tmp_path / "out") == weights.fingerprint(shipped.head_dir()), "no noise, no change"
    assert worse.main([str(tmp_path / "out")]) == 1
    assert "exists" in capsys.readouterr().err
    assert worse.main(["x", "strong"]) == 2
    assert "usage" in capsys.readouterr().err
