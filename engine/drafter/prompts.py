"""Training and held-out prompts, built from what every machine has: our topics and templates, and Python's own library.

Topics are split before they meet the templates, so that no held-out prompt shares its topic with a training prompt.
The text to summarise, rewrite and explain is the standard library's (its reference texts and sources), read from disk
and never shipped: another Python version gives slightly other prompts.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import random
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from pydoc_data.topics import topics as reference_texts
from typing import Any, Final

import msgspec

from engine.drafter.recipe import KINDS, Kind, Recipe

HELD_OUT_SHARE: Final = 0.06
"""Of each list of topics."""

_PASSAGE_LENGTH: Final = range(220, 900)
_SOURCE_LENGTH: Final = range(160, 1200)
"""Characters of a passage or a function that is put into a prompt."""

_SOURCE_LIMIT: Final = 400
_PASSAGE_LIMIT: Final = 400


class Prompt(msgspec.Struct, frozen=True):
    kind: Kind
    text: str
    topic: str
    """What it is about: the split between training and held-out prompts is by this."""
    temperature: float = 0.0
    """Of the answer that is to be generated."""


class PromptSets(msgspec.Struct, frozen=True):
    training: tuple[Prompt, ...]
    """In an order that mixes the kinds: any beginning of it is a fair sample."""
    held_out: tuple[Prompt, ...]
    """All greedy."""


def build(recipe: Recipe) -> PromptSets:
    """The prompts of a recipe: the same for the same recipe and Python version."""
    topics, templates = _topics(), _toml("templates.toml")
    training: list[Prompt] = []
    held_out: list[Prompt] = []
    for kind in KINDS:
        rest, apart = _split(kind, templates[kind], topics, recipe.seed)
        training += _sampled(rest, recipe.prompts.get(kind, 0), recipe)
        held_out += apart[: recipe.held_out.get(kind, 0)]
    _random(recipe.seed, "order").shuffle(training)
    return PromptSets(tuple(training), tuple(held_out))


def _split(
    kind: Kind, groups: dict[str, list[str]], topics: dict[str, list[str]], seed: int
) -> tuple[list[Prompt], list[Prompt]]:
    """(training, held out), each shuffled: every topic of every group with every template of the group."""
    rest: list[Prompt] = []
    apart: list[Prompt] = []
    for group, templates in groups.items():
        held = set(_held_out(topics[group], seed, group))
        for topic in topics[group]:
            made = [Prompt(kind, _fill(template, topic), topic) for template in templates]
            (apart if topic in held else rest).extend(made)
    for prompts in (rest, apart):
        _random(seed, f"{kind} prompts").shuffle(prompts)
    return rest, apart


def _held_out(topics: list[str], seed: int, group: str) -> list[str]:
    return _random(seed, f"{group} held out").sample(topics, max(1, round(len(topics) * HELD_OUT_SHARE)))


def _fill(template: str, topic: str) -> str:
    text = template.replace("{x}", topic)
    return text[0].upper() + text[1:]


def _sampled(prompts: list[Prompt], count: int, recipe: Recipe) -> Iterator[Prompt]:
    """`count` prompts with their temperatures; where there are fewer, the same again at a temperature above 0."""
    generator = _random(recipe.seed, "temperatures")
    for number in range(count):
        prompt = prompts[number % len(prompts)]
        greedy = number < len(prompts) and generator.random() < recipe.greedy_share
        temperature = 0.0 if greedy else generator.choice(recipe.temperatures)
        yield msgspec.structs.replace(prompt, temperature=temperature)


def _topics() -> dict[str, list[str]]:
    lists: dict[str, list[str]] = _toml("topics.toml")
    return lists | {"sources": library_functions(), "passages": library_passages()}


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((files("engine.drafter") / "texts" / name).read_text(encoding="utf-8"))


def _random(seed: int, purpose: str) -> random.Random:
    return random.Random(f"{seed} {purpose}")  # a string seeds by its hash of bytes, not by Python's own hash()


@functools.cache
def library_functions() -> list[str]:
    """Sources of functions of the standard library, parsed, not imported."""
    return _evenly(_unique(_functions()), _SOURCE_LIMIT)


@functools.cache
def library_passages() -> list[str]:
    """Paragraphs of prose from Python's reference texts and from the docstrings of its library."""
    return _evenly(_unique([*_reference_paragraphs(), *_docstring_paragraphs()]), _PASSAGE_LIMIT)


def _functions() -> Iterator[str]:
    for path, tree in _library():
        source = path.read_text(encoding="utf-8")
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                text = ast.get_source_segment(source, node) or ""
                if len(text) in _SOURCE_LENGTH:
                    yield text


def _reference_paragraphs() -> Iterator[str]:
    for name in sorted(reference_texts):
        yield from _prose(reference_texts[name])


def _docstring_paragraphs() -> Iterator[str]:
    for _, tree in _library():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield from _prose(ast.get_docstring(node) or "")


def _prose(text: str) -> Iterator[str]:
    """The paragraphs that are sentences: not indented (examples, tables), of a middling length."""
    for paragraph in text.split("\n\n"):
        indented = any(line.startswith(" ") for line in paragraph.splitlines())
        joined = " ".join(paragraph.split())
        if not indented and len(joined) in _PASSAGE_LENGTH and joined.endswith("."):
            yield joined


@functools.cache
def _library() -> list[tuple[Path, ast.Module]]:
    """The top-level modules of the standard library and those of some of its packages, by name."""
    root = Path(sysconfig.get_path("stdlib"))
    packages = ("collections", "concurrent/futures", "email", "http", "json", "logging", "urllib", "xml/dom", "wsgiref")
    found = []
    for folder in (root, *(root / package for package in packages)):
        for path in sorted(folder.glob("*.py")):
            # A file of this installation that is no source of the library's is passed over.
            with contextlib.suppress(SyntaxError, UnicodeDecodeError):
                found.append((path, ast.parse(path.read_text(encoding="utf-8"))))
    return found


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _evenly(texts: list[str], count: int) -> list[str]:
    """`count` of them, spread over the whole: neighbours are much alike."""
    if len(texts) <= count:
        return texts
    return [texts[number * len(texts) // count] for number in range(count)]
