"""The table [keys]: an action of the console and the key, or keys, it shall have instead of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, _character_to_key

from console.app.actions import ACTIONS, DIALOGS, Action
from console.cli.settings.reading import nearest

_MODIFIERS: Final = re.compile(r"(?:(?:ctrl|shift|alt|super|hyper|meta)\+)*")
_NAMED: Final = frozenset({key.value.split("+")[-1] for key in Keys} | set(KEY_NAME_REPLACEMENTS.values()))
MULTIPLEXERS: Final = frozenset({"ctrl+s", "ctrl+a", "ctrl+b", "ctrl+j"})
"""tmux, screen or the terminal itself take these."""


def textual_keys(text: str) -> str:
    """`ctrl+x, ?` as Textual names it. Raises ValueError: no key is called so."""
    return ",".join(_one(part.strip() or ",") for part in _split(text))


def problems(table: dict[str, Any]) -> Iterator[str]:
    """What of it can't be meant, a line each."""
    moved: dict[str, str] = {}
    for name, keys in table.items():
        if name not in ACTIONS:
            yield f"[keys] {name} is unknown{nearest(name, ACTIONS)}"
        elif not isinstance(keys, str) or not keys.strip():
            yield f'[keys] {name} is {keys!r}: the name of a key, such as "f5" or "ctrl+x"'
        else:
            try:
                moved[name] = textual_keys(keys)
            except ValueError as error:
                yield f"[keys] {name}: {error}"
                continue
            if taken := MULTIPLEXERS & set(moved[name].split(",")):
                yield f"[keys] {name}: {', '.join(sorted(taken))} is taken by terminal multiplexers"
    yield from _twice(ACTIONS.values(), moved)


def _twice(actions: Collection[Action], moved: Mapping[str, str]) -> Iterator[str]:
    """Keys that two actions would share where both can be meant, and that they did not share before."""
    before = set(_shared(actions, {}))
    told = set()
    for (context, key), names in sorted(_shared(actions, moved).items()):
        if (context, key) not in before and (key, *names) not in told:
            told.add((key, *names))
            yield f"[keys] {' and '.join(names)} would both be {key}: give one of them another key"


def _shared(actions: Collection[Action], moved: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
    """Actions of one key, by context: on a screen those of everywhere and of a replay count too, in a dialog only its
    own, for it keeps the others out."""
    found: dict[tuple[str, str], list[str]] = {}
    for context in dict.fromkeys(action.context for action in actions):
        beside = {context} if context in DIALOGS else {context, "everywhere", "replay"}
        named: dict[str, list[str]] = {}
        for action in actions:
            for key in moved.get(action.id, action.keys).split(",") if action.context in beside else ():
                named.setdefault(key, []).append(action.id)
        found |= {(context, key): names for key, names in named.items() if len(names) > 1}
    return found


def _split(text: str) -> list[str]:
    """At commas; a comma alone is the key of that name."""
    return [text] if text.strip() == "," else text.split(",")


def _one(key: str) -> str:
    modifiers = _MODIFIERS.match(key)
    start = modifiers.group() if modifiers else ""
    name = key[len(start) :] or key
    if len(name) == 1:
        return start + _character_to_key(name)
    if name in _NAMED:
        return start + name
    raise ValueError(f"no key is called {key!r}{nearest(name, sorted(_NAMED)).split('; there are')[0]}")
