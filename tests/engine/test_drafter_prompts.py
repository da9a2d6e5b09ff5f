"""The prompts of the learned drafter: nothing held out is trained on, and the same recipe makes the same prompts."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from console.traffic import prompts as traffic
from engine.drafter import prompts
from engine.drafter.recipe import FULL, KINDS, TINY, Recipe, RecipeError, read, validate
from tests.engine.greedy import CHATS


@pytest.fixture(scope="module")
def full() -> prompts.PromptSets:
    return prompts.build(FULL)


def test_no_held_out_prompt_and_no_held_out_topic_is_trained_on(full: prompts.PromptSets) -> None:
    assert not {prompt.text for prompt in full.training} & {prompt.text for prompt in full.held_out}
    assert not {prompt.topic for prompt in full.training} & {prompt.topic for prompt in full.held_out}


def test_what_the_sampling_tests_ask_was_held_out(full: prompts.PromptSets) -> None:
    assert {*CHATS} <= {prompt.text for prompt in full.held_out}


def test_the_demo_is_not_trained_on(full: prompts.PromptSets) -> None:
    trained = {prompt.text for prompt in full.training}
    asked = {
        message.content for workload in traffic.WORKLOADS for prompt in traffic.prompts(workload) for message in prompt
    }
    assert asked
    assert not asked & trained


def test_amounts_kinds_and_temperatures_are_the_recipes(full: prompts.PromptSets) -> None:
    assert Counter(prompt.kind for prompt in full.training) == FULL.prompts
    assert Counter(prompt.kind for prompt in full.held_out) == FULL.held_out
    assert all(prompt.temperature == 0 for prompt in full.held_out)
    assert {prompt.temperature for prompt in full.training} == {0.0, *FULL.temperatures}
    greedy = sum(prompt.temperature == 0 for prompt in full.training) / len(full.training)
    assert abs(greedy - FULL.greedy_share) < 0.05


def test_any_beginning_is_a_fair_sample(full: prompts.PromptSets) -> None:
    first = Counter(prompt.kind for prompt in full.training[:1000])
    for kind in KINDS:
        assert abs(first[kind] / 1000 - FULL.prompts[kind] / len(full.training)) < 0.06


def test_the_same_recipe_gives_the_same_prompts_and_another_seed_others() -> None:
    once, twice = prompts.build(TINY), prompts.build(TINY)
    assert once == twice
    assert prompts.build(msgspec.structs.replace(TINY, seed=21)) != once


def test_more_than_there_are_repeats_them_only_at_other_temperatures() -> None:
    recipe = msgspec.structs.replace(TINY, prompts={"languages": 800}, held_out={"languages": 2})
    made = prompts.build(recipe).training
    assert len(made) == 800
    greedy = [prompt.text for prompt in made if prompt.temperature == 0]
    assert len(greedy) == len(set(greedy))


def test_passages_and_functions_come_from_the_standard_library() -> None:
    functions, passages = prompts.library_functions(), prompts.library_passages()
    assert len(functions) > 200
    assert len(passages) > 200
    assert all(text.startswith("def ") for text in functions)
    assert len(set(functions)) == len(functions)


def test_a_recipe_from_a_file(tmp_path: object) -> None:
    path = tmp_path / "mine.toml"  # type: ignore[operator]
    path.write_text('name = "mine"\nsteps = 7\n[prompts]\nchat = 3\n[held_out]\nchat = 1\n')
    recipe = read(str(path))
    assert (recipe.name, recipe.steps, recipe.prompts) == ("mine", 7, {"chat": 3})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "x"\nstepz = 7\n', "stepz"),
        ('name = "x"\nsteps = "many"\n', "steps"),
        ('name = "x"\n', "prompts"),
        ('name = "x"\nsteps = 0\n[prompts]\nchat = 3\n[held_out]\nchat = 1\n', "steps"),
        ('name = "x"\n[prompts]\npoems = 3\n', "poems"),
        ("name = ", "Invalid value"),
    ],
)
def test_a_wrong_recipe_is_refused_with_its_place(tmp_path: object, text: str, words: str) -> None:
    path = tmp_path / "mine.toml"  # type: ignore[operator]
    path.write_text(text)
    with pytest.raises(RecipeError, match=words) as found:
        read(str(path))
    assert "mine.toml" in str(found.value) or words in str(found.value)


def test_an_unknown_recipe_names_the_known_ones() -> None:
    with pytest.raises(RecipeError, match="full, tiny"):
        read("huge")


@pytest.mark.parametrize("recipe", [FULL, TINY])
def test_our_own_recipes_hold(recipe: Recipe) -> None:
    validate(recipe)
