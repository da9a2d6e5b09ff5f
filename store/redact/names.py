"""Names that are met as records are read: tags, which get numbers, and people; with the hosts one rule for them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from store.buckets import OTHER, UNATTRIBUTED, UNTAGGED
from store.redact.rule import HOST, USER, Rule, without_stand_ins

_KEPT_TAGS: Final = frozenset((UNTAGGED, OTHER, UNATTRIBUTED))


class Names:
    def __init__(self, users: Iterable[str], hosts: Iterable[str]) -> None:
        self.people = set(users)
        self._hosts = tuple(hosts)
        self._tags: dict[str, str] = {}
        self._made: dict[tuple[bool, bool, int, int], Rule | None] = {}

    def tag(self, workload: str) -> str:
        """`tag-1`, `tag-2`, … as they are met. The names of ours for what has no tag stay."""
        if workload in _KEPT_TAGS:
            return workload
        return self._tags.setdefault(workload, f"tag-{len(self._tags) + 1}")

    def rule(self, names: bool, tags: bool) -> Rule | None:
        """Users and hosts, where `names`, and `tags`; None where there is nothing to look for."""
        key = (names, tags, len(self._tags), len(self.people))
        if key not in self._made:
            words = dict(self._words(names, tags))
            self._made[key] = _any_of(words) if words else None
        return self._made[key]

    def _words(self, names: bool, tags: bool) -> Iterator[tuple[str, str]]:
        """What stands in for each word, where several are the same the last."""
        if names:
            for host in self._hosts:
                yield host, HOST
            for person in self.people:
                yield person, USER
        if tags:
            for tag, number in self._tags.items():
                yield without_stand_ins(tag), number


def _any_of(words: dict[str, str]) -> Rule:
    """Longest first: any of them may be part of another."""
    stand_in: dict[str, str] = {}
    for word, mark in words.items():  # an exact match counts before one in another case
        stand_in.setdefault(word.casefold(), mark)
    stand_in |= words
    longest_first = sorted(words, key=len, reverse=True)
    patterns = {word: _pattern(word, r"(?:\.[a-z0-9-]+)*" if words[word] == HOST else "") for word in longest_first}
    choices = [patterns[word] for word in longest_first if not word[0].isalnum()]
    begun = [patterns[word] for word in longest_first if word[0].isalnum()]
    if begun:  # one look back for all of them: where no word begins, none of what may be hundreds is tried
        choices.append(rf"(?<![^\W_])(?:{'|'.join(begun)})")

    def put(found: re.Match[str]) -> str:
        return stand_in.get(found[0]) or stand_in.get(found[0].casefold()) or HOST

    return Rule(re.compile("|".join(choices), re.I), put)


def _pattern(text: str, tail: str) -> str:
    """`text` where no letter or digit follows that would make it longer."""
    return re.escape(text) + tail + (r"(?![^\W_])" if text[-1].isalnum() else "")
