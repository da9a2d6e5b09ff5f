"""The CPU faults of vLLM are found by self-test, repaired, and left alone where there are none."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import cpu_faults

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def reported() -> list[list[Any]]:
    """What `python -m engine.cpu_faults` finds and repairs in the installed vLLM, in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "engine.cpu_faults"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_fault_is_looked_for_and_none_is_left(reported: list[list[Any]]) -> None:
    assert [name for name, *_ in reported] == [cpu_faults.SAMPLING, cpu_faults.SEEDS, cpu_faults.TOP_K]
    for name, present, repaired, detail in reported:
        assert repaired or not present, f"{name}: {detail}"
        assert "moved" not in detail


def test_the_installed_vllm_still_has_what_is_patched() -> None:
    lines = cpu_faults.moved()
    assert lines == [], "vLLM has moved:\n" + "\n".join(lines)


def test_a_vllm_that_moved_is_said_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cpu_faults, "PATCHED", (("json", "no_such_function", ()), ("json", "dumps", ("obj", "no_such_parameter")))
    )
    lines = cpu_faults.moved()
    assert "json.no_such_function: gone" in lines[0]
    assert "missing no_such_parameter" in lines[1]
    found = cpu_faults._repair_all()
    assert [(fault.present, fault.repaired) for fault in found] == [(False, False)] * 3
    assert "vLLM has moved" in found[0].detail


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64, torch.bool])
def test_each_value_is_repeated_by_its_requests_tokens(dtype: Any) -> None:
    x = torch.tensor([3, 0, 5], dtype=dtype)
    ends = torch.tensor([2, 5, 6], dtype=torch.int32)
    expected = torch.tensor([3, 3, 0, 0, 0, 5], dtype=dtype)
    assert torch.equal(cpu_faults.expand_batch_to_tokens(x, ends, 6), expected)


def test_values_are_replaced_before_they_are_repeated() -> None:
    temperatures = torch.tensor([0.0, 0.8])
    expanded = cpu_faults.expand_batch_to_tokens(temperatures, torch.tensor([1, 3]), 3, replace_from=0, replace_to=1)
    assert torch.equal(expanded, torch.tensor([1.0, 0.8, 0.8]))


def test_no_tokens_at_all_expand_to_nothing() -> None:
    empty = cpu_faults.expand_batch_to_tokens(torch.tensor([0.5]), torch.tensor([0]), 0)
    assert empty.shape == (0,)


# Fault 2


def test_torch_still_has_no_offset_on_cpu_generators() -> None:
    """If this fails, torch has learnt it: the self-test then decides whether vLLM still needs the repair."""
    with pytest.raises(RuntimeError, match="offset"):
        torch.Generator(device="cpu").get_offset()


def test_a_rewound_generator_draws_again_what_it_drew() -> None:
    plain = torch.Generator(device="cpu").manual_seed(7)
    generator = cpu_faults.rewindable(plain)
    generator.mark()
    drawn = torch.empty(8).exponential_(generator=generator)
    generator.set_offset(generator.get_offset() - 4)
    again = torch.empty(8).exponential_(generator=generator)
    assert torch.equal(drawn, again)
    assert torch.equal(drawn, torch.empty(8).exponential_(generator=plain))


class FakeRunner:
    """Only what the wrapped `_sample` touches: two requests, of which the first is in the middle of its prefill."""

    def __init__(self, generators: dict[int, Any]) -> None:
        self.input_batch = SimpleNamespace(num_reqs=2, generators=generators)
        self.discard_request_mask = SimpleNamespace(np=[True, False])

    def _sample(self, logits: Any, spec_decode_metadata: Any) -> list[float]:
        return [torch.rand(1, generator=generator).item() for generator in self.input_batch.generators.values()]


def test_only_discarded_samples_are_taken_back() -> None:
    generators = {index: cpu_faults.rewindable(torch.Generator().manual_seed(index)) for index in (0, 1)}
    runner = FakeRunner(generators)
    sample = cpu_faults._marking_before(FakeRunner._sample)
    first = sample(runner, None, None)
    generators[0].set_offset(generators[0].get_offset() - 4)
    second = sample(runner, None, None)
    assert second[0] == first[0]
    assert second[1] != first[1]


def test_requests_without_seed_and_runners_without_generators_are_left_alone() -> None:
    sample = cpu_faults._marking_before(FakeRunner._sample)
    assert sample(FakeRunner({}), None, None) == []
    assert len(sample(FakeRunner({0: torch.Generator()}), None, None)) == 1


# Fault 3


def test_a_mask_is_asked_only_where_there_are_rows() -> None:
    seen = []
    mask = cpu_faults.nothing_of_nothing(lambda logits, k: seen.append(k) or -logits)
    logits = torch.ones(2, 3)
    assert torch.equal(mask(logits, "k"), -logits)
    nothing = torch.empty(0, 3)
    assert mask(nothing, "none") is nothing
    assert seen == ["k"]


# When it happens


@pytest.fixture
def late_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = "specdeck_late_module"
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def test_the_repair_waits_for_the_import_and_then_happens_once(late_module: str) -> None:
    seen: list[int] = []

    def callback() -> None:
        seen.append(sys.modules[late_module].value)  # the module's own code has run

    cpu_faults._after_import(late_module, callback)
    cpu_faults._after_import(late_module, callback)
    assert seen == []
    importlib.import_module(late_module)
    importlib.import_module(late_module)
    assert seen == [1]
    assert not any(isinstance(finder, cpu_faults._AfterImport) for finder in sys.meta_path)
    cpu_faults._after_import(late_module, callback)
    assert seen == [1, 1]


def test_a_repair_that_fails_does_not_fail_the_import(late_module: str) -> None:
    def callback() -> None:
        raise RuntimeError("self-test broke")

    cpu_faults._after_import(late_module, callback)
    assert importlib.import_module(late_module).value == 1


def test_the_plugin_module_itself_loads_neither_torch_nor_vllm() -> None:
    script = "import sys, engine.cpu_faults; sys.exit(int(bool({'torch', 'vllm'} & set(sys.modules))))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
