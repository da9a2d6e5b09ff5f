"""The prompts of each workload: every combination of real text and request, as one fixed list per workload.

The texts are package data (`texts/`). Prompts have 50 to 400 tokens, some more than 512, so that two context buckets
show.
"""

from __future__ import annotations

import functools
import itertools
import re
from importlib.resources import files
from typing import Final, Literal, get_args

import msgspec

Workload = Literal["code", "repeat", "chat", "creative"]
WORKLOADS: Final[tuple[Workload, ...]] = get_args(Workload)

TEMPERATURE: Final[dict[Workload, float]] = {"code": 0.0, "repeat": 0.0, "chat": 0.3, "creative": 1.0}
MAX_TOKENS: Final[dict[Workload, tuple[int, ...]]] = {
    "code": (96, 128, 160),
    "repeat": (64, 96, 128),
    "chat": (48, 64, 80),
    "creative": (48, 64, 96),
}
"""Lengths of answer that a request of the workload may ask for, tokens."""


class Message(msgspec.Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    content: str


Prompt = tuple[Message, ...]


@functools.cache
def prompts(workload: Workload) -> tuple[Prompt, ...]:
    """Every prompt of a workload, in a fixed order, all different."""
    return tuple(_MAKERS[workload]())


def _code() -> list[Prompt]:
    """Edit a file: most of the answer stands in the prompt already."""
    snippets = _texts("code")
    made = [
        _ask(f"{edit}\nReturn the whole file with only that change.\n\n```python\n{source}```")
        for source in snippets
        for edit in _edits(source)
    ]
    for first, second, third, fourth in _windows(snippets, 4):
        name = _first_function(fourth)
        source = "\n\n".join((first, second, third))
        made.append(
            _ask(
                f"Here is the module so far:\n\n```python\n{source}```\n\n"
                f"And here is one more part of it:\n\n```python\n{fourth}```\n\n"
                f"Add a one-line docstring to `{name}` in that last part. "
                "Return only that last part with that change."
            )
        )
    return made


def _edits(source: str) -> list[str]:
    name = _first_function(source)
    return [
        f"Rename the function `{name}` to `{name}_item`.",
        f'Add the docstring """Part of the public interface.""" to the function `{name}`.',
        "Add the comment `# reviewed by the platform team` as the first line of this file.",
        f'Add `print("{name} called")` as the first line of the function `{name}`.',
    ]


def _repeat() -> list[Prompt]:
    """Say again, or pick out of, a passage that stands in the prompt."""
    passages = _texts("passages")
    made = []
    for passage in passages:
        first_words = " ".join(passage.split()[:5])
        last = re.split(r"(?<=\.)\s+", passage)[-1]
        made += [
            _ask(f"Repeat the following text word for word, without any comment.\n\n{passage}"),
            _ask(f'Copy this text exactly as it is, starting with "{first_words}".\n\n{passage}'),
            _ask(f"Extract every sentence of this text as a numbered list, in the original words.\n\n{passage}"),
            _ask(f"{passage}\n\nWrite the text above once more, exactly, and end with: {last}"),
        ]
    for window in _windows(passages, 7):
        text = "\n\n".join(window)
        made.append(
            _ask(f"{text}\n\nRepeat the text above word for word, from the first sentence on, without any comment.")
        )
    return made


def _chat() -> list[Prompt]:
    """A question: the answer stands nowhere. Without a conversation before it, which the small target only echoes."""
    return [
        _ask(f"{question.format(topic=topic)} Answer in three or four sentences.")
        for topic, question in itertools.product(_TOPICS, _QUESTIONS)
    ]


def _creative() -> list[Prompt]:
    """Invent something: at temperature 1 hardly two words can be foreseen."""
    return [
        _ask(
            f"Write the opening of a strange and vivid story about {who} who {deed} {where}. Use unusual words and "
            "images, let every sentence surprise the reader, never repeat a phrase, and do not begin with "
            "'Once upon a time'."
        )
        for (who, deed), where in itertools.product(zip(_HEROES, _DEEDS, strict=True), _PLACES)
    ]


def _ask(text: str) -> Prompt:
    return (Message("user", text),)


def _windows(texts: tuple[str, ...], length: int) -> list[tuple[str, ...]]:
    """Runs of `length` texts, one starting at each, around the end."""
    around = texts + texts
    return [around[start : start + length] for start in range(len(texts))]


def _first_function(source: str) -> str:
    names: list[str] = re.findall(r"def (\w+)\(", source)
    return next(name for name in names if not name.startswith("__"))


def _texts(folder: str) -> tuple[str, ...]:
    entries = sorted((files("console.traffic") / "texts" / folder).iterdir(), key=lambda entry: entry.name)
    return tuple(entry.read_text(encoding="utf-8") for entry in entries if entry.name.endswith(".txt"))


_MAKERS: Final = {"code": _code, "repeat": _repeat, "chat": _chat, "creative": _creative}

_TOPICS: Final = (
    "a bicycle",
    "bread",
    "the moon",
    "a garden in a dry summer",
    "a small kitchen",
    "learning the piano",
    "chess",
    "a long train journey",
    "keeping a dog in a flat",
    "winter in the mountains",
    "reading before sleep",
    "a city without cars",
)
_QUESTIONS: Final = (
    "What should a beginner know about {topic}?",
    "Why do some people not like {topic}?",
    "How would you explain {topic} to a child of six?",
    "What has changed about {topic} in the last hundred years?",
    "Name one advantage and one disadvantage of {topic}, and say which weighs more.",
)
_HEROES: Final = (
    "a clockmaker",
    "a deaf violinist",
    "two rival beekeepers",
    "a retired spy",
    "a lighthouse cat",
    "a glass tailor",
)
_DEEDS: Final = (
    "steals an hour from every Tuesday",
    "hears the colour of storms",
    "wage war with perfume",
    "forgets every name but one",
    "negotiates with the tide",
    "sews windows into the night",
)
_PLACES: Final = (
    "in a city built on stilts",
    "beneath a frozen lake",
    "on the last train to the salt mines",
    "inside an abandoned opera house",
    "at the edge of a paper desert",
    "aboard a drifting greenhouse",
    "in a museum of lost umbrellas",
    "on a mountain that hums",
)
