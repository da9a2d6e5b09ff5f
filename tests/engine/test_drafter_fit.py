"""Features, fit and export on a target of a few thousand weights: right numbers, and nothing lost when cut off.

The target is a random Llama made here: what a head learns from it is worthless, how it is learned is the real code.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.drafter.answers import HELD_OUT, Answer, shard_path
from engine.drafter.recipe import Recipe
from engine.drafter.work import Work, WorkError, draft_of, read_run
from engine.models import ModelPath, identify

torch = pytest.importorskip("torch")

VOCABULARY = 96
RECIPE = Recipe(
    name="unit",
    prompts={"chat": 8},
    held_out={"chat": 4},
    draft_vocabulary=48,
    batch_tokens=64,
    steps=12,
    warmup_steps=2,
    evaluate_every=4,
    early_step=4,
    patience=99,
)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> ModelPath:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    folder = tmp_path_factory.mktemp("models") / "little"
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return identify(folder)


@pytest.fixture
def work(tmp_path: Path, target: ModelPath) -> Work:
    """A folder in which the answers are there already."""
    work = Work(tmp_path / "work")
    work.claim(RECIPE, target)
    work.answers.mkdir()
    generator = random.Random(1)
    for name, count in (("00000", 6), ("00001", 6), (HELD_OUT, 4)):
        lines = [msgspec.json.encode(_answer(generator)) for _ in range(count)]
        shard_path(work, name).write_bytes(b"\n".join(lines) + b"\n")
    return work


def _answer(generator: random.Random) -> Answer:
    prompt = [generator.randrange(VOCABULARY) for _ in range(generator.randint(3, 9))]
    answer = [generator.randrange(40) for _ in range(generator.randint(9, 20))]
    return Answer("chat", 0.0, prompt, answer)


def _silent(line: str) -> None:
    del line


def _extract(work: Work, target: ModelPath) -> None:
    from engine.drafter.features import extract

    extract(work, Path(target.path), _silent)


def test_the_states_are_the_targets(work: Work, target: ModelPath) -> None:
    """From the last depth follow the target's own logits, whatever the padding was; tokens and answers are kept."""
    from engine.drafter.features import Shard
    from engine.drafter.target import Target

    _extract(work, target)
    shard = Shard(work.features / "00000")
    loaded = Target(Path(target.path))
    written = {tuple(answer.prompt + answer.answer): answer for answer in _read(work, "00000")}
    assert len(shard.spans) == len(written)
    for span in shard.spans:
        tokens = shard.tokens(span)
        assert span.answer == len(written[tuple(tokens.tolist())].prompt)
        with torch.inference_mode():
            right = loaded._causal(tokens[None]).logits[0].float()
            found = (loaded.normed(shard.states(span)) @ loaded.output_rows(torch.arange(VOCABULARY)).T).float()
        assert torch.allclose(found, right, atol=0.02)


def _read(work: Work, name: str) -> list[Answer]:
    from engine.drafter.answers import read

    return read(shard_path(work, name))


def test_depths_lie_in_the_target_and_end_with_its_last() -> None:
    from engine.drafter.target import depths

    assert depths(30) == [2, 12, 21, 30]
    for layers in range(1, 100):
        found = depths(layers)
        assert found == sorted(set(found))
        assert found[0] >= 1
        assert found[-1] == layers


def test_an_extraction_that_is_cut_off_leaves_no_half_shard(
    work: Work, target: ModelPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.drafter.target import Target

    states, passes = Target.states, []

    def fails_later(self: Any, ids: Any) -> Any:
        passes.append(1)
        if len(passes) > 1:
            raise RuntimeError("cut off")
        return states(self, ids)

    monkeypatch.setattr(Target, "states", fails_later)
    with pytest.raises(RuntimeError, match="cut off"):
        _extract(work, target)
    before = sorted(path.name for path in work.features.glob("[!.]*"))
    assert before == ["00000"]
    kept = (work.features / "00000" / "states.bin").stat().st_mtime_ns
    monkeypatch.undo()
    _extract(work, target)
    assert sorted(path.name for path in work.features.glob("[!.]*")) == ["00000", "00001", HELD_OUT]
    assert (work.features / "00000" / "states.bin").stat().st_mtime_ns == kept


class Cut(Exception):
    """Stands in for a kill between two looks."""


def test_a_run_that_was_cut_off_ends_as_one_that_was_not(work: Work, target: ModelPath, tmp_path: Path) -> None:
    from engine.drafter.fit import BEST, train

    _extract(work, target)
    whole = train(work, RECIPE, Path(target.path), _silent)
    straight = torch.load(work.fit / BEST)
    work.fit.rename(tmp_path / "straight")
    lines: list[str] = []

    def cut(line: str) -> None:
        lines.append(line)
        if "step 8" in line:
            raise Cut

    with pytest.raises(Cut):
        train(work, RECIPE, Path(target.path), cut)
    resumed = train(work, RECIPE, Path(target.path), _silent)
    assert [look.step for look in resumed] == [look.step for look in whole] == [4, 8, 12]
    for found, right in zip(resumed, whole, strict=True):
        assert found.loss == pytest.approx(right.loss, rel=1e-3)
    again = torch.load(work.fit / BEST)
    for name, tensor in straight["head"].items():
        assert torch.allclose(again["head"][name], tensor, atol=1e-4), name


def test_training_lowers_the_loss_and_a_finished_run_does_nothing_more(work: Work, target: ModelPath) -> None:
    from engine.drafter.fit import BEST, train

    _extract(work, target)
    looks = train(work, RECIPE, Path(target.path), _silent)
    assert looks[-1].loss < looks[0].loss
    stamp = (work.fit / BEST).stat().st_mtime_ns
    assert train(work, RECIPE, Path(target.path), _silent) == looks
    assert (work.fit / BEST).stat().st_mtime_ns == stamp


def test_a_run_stops_when_held_out_acceptance_no_longer_rises(
    work: Work, target: ModelPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.drafter import fit
    from engine.drafter.held_out import HeldOut, KindAcceptance

    _extract(work, target)
    found = iter((0.2, 0.3, 0.25, 0.25, 0.25, 0.9))

    def worse(*arguments: Any) -> HeldOut:
        del arguments
        return HeldOut({"chat": KindAcceptance(10, [next(found), 0.0])})

    monkeypatch.setattr(fit, "acceptance", worse)
    recipe = msgspec.structs.replace(RECIPE, steps=100, patience=3)
    assert [look.step for look in fit.train(work, recipe, Path(target.path), _silent)] == [4, 8, 12, 16, 20]


def test_the_exported_folder_has_vllms_names_and_the_maps_of_its_vocabulary(work: Work, target: ModelPath) -> None:
    from safetensors.torch import load_file

    from engine.drafter.export import export
    from engine.drafter.fit import train
    from engine.drafter.prompts import PromptSets
    from engine.drafter.work import write_json
    from tests.engine.random_head import write_random_head

    write_json(work.prompts, PromptSets((), ()))
    _extract(work, target)
    train(work, RECIPE, Path(target.path), _silent)
    export(work, target)
    random_head = load_file(
        write_random_head(Path(target.path), work.folder / "random", "eagle3") / "model.safetensors"
    )
    for folder in (work.head, work.early_head):
        weights = load_file(folder / "model.safetensors")
        # The random head is known to load; it takes four depths whatever the target has.
        assert set(weights) == set(random_head) - {"fc_norm.3.weight"} | {"fc_norm.3.weight"} & set(weights)
        kept = weights["d2t"] + torch.arange(len(weights["d2t"]))
        assert kept.tolist() == sorted(set(kept.tolist()))
        assert weights["t2d"].nonzero().flatten().tolist() == kept.tolist()
        config = json.loads((folder / "config.json").read_text())
        assert config["architectures"] == ["LlamaForCausalLMEagle3"]
        assert config["draft_vocab_size"] == len(kept) == weights["lm_head.weight"].shape[0]
        assert config["eagle_aux_hidden_state_layer_ids"][-1] == 4
        card = (folder / "README.md").read_text()
        assert target.identity in card
        assert "Held-out acceptance" in card
    assert identify(work.head).fingerprint != identify(work.early_head).fingerprint


def test_stages_say_which_one_is_missing(tmp_path: Path, target: ModelPath) -> None:
    from engine.drafter.export import export
    from engine.drafter.features import extract
    from engine.drafter.fit import train

    work = Work(tmp_path / "empty")
    work.claim(RECIPE, target)
    with pytest.raises(WorkError, match="drafter answers"):
        extract(work, Path(target.path), _silent)
    with pytest.raises(WorkError, match="drafter features"):
        train(work, RECIPE, Path(target.path), _silent)
    with pytest.raises(WorkError, match="drafter fit"):
        export(work, target)


def test_a_folder_belongs_to_one_recipe_and_one_target(tmp_path: Path, target: ModelPath) -> None:
    work = Work(tmp_path / "mine")
    work.claim(RECIPE, target)
    work.claim(RECIPE, target)
    with pytest.raises(WorkError, match="max_answer_tokens"):
        work.claim(msgspec.structs.replace(RECIPE, max_answer_tokens=13), target)
    with pytest.raises(WorkError, match="little@"):
        work.claim(RECIPE, msgspec.structs.replace(target, fingerprint="0" * 16))
    longer = msgspec.structs.replace(RECIPE, steps=13)
    work.claim(longer, target)
    assert read_run(work).recipe == longer, "answers and features serve another fit"
    work.fit.mkdir()
    with pytest.raises(WorkError, match="steps"):
        work.claim(RECIPE, target)
    (work.folder / "run.json").write_text("{")
    with pytest.raises(WorkError, match=r"run\.json"):
        work.claim(RECIPE, target)


def test_one_process_at_a_time_and_the_remains_of_a_killed_one_are_cleared(
    tmp_path: Path, target: ModelPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.drafter.work.PATIENCE", 0.3)
    work = Work(tmp_path / "mine")
    work.claim(RECIPE, target)
    half_shard = draft_of(work.features / "00000")
    half_shard.mkdir(parents=True)
    (half_shard / "states.bin").write_bytes(b"half")
    half_file = draft_of(work.prompts)
    half_file.write_text("{")
    kept = work.features / "00001"
    kept.mkdir()
    with work.alone():
        assert not half_shard.exists()
        assert not half_file.exists()
        assert kept.exists()
        with pytest.raises(WorkError, match="another process"), Work(work.folder).alone():
            pass
    with work.alone():
        pass
