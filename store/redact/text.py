"""Redacts free text: every rule in turn, the most certain first."""

from __future__ import annotations

from collections.abc import Iterator

from store.redact.addresses import ADDRESSES
from store.redact.credentials import CREDENTIALS
from store.redact.homes import OTHERS_HOMES, own_homes
from store.redact.known_secrets import known_secrets
from store.redact.models import MODEL_PATH, ModelPaths
from store.redact.names import Names
from store.redact.others import OTHERS
from store.redact.private import Private
from store.redact.requests import REQUESTS
from store.redact.rule import Rule, readable, without_stand_ins


class TextRedactor:
    """`names` and `models` grow while what is to be redacted is read; the rules follow."""

    def __init__(self, private: Private, names: Names, models: ModelPaths) -> None:
        self._names = names
        self._models = models
        self._known = known_secrets(private.secrets)
        self._homes = own_homes(private.homes)

    def redact(self, text: str, *, names: bool = True, tags: bool = True) -> str:
        """`names` and `tags` off: words that only could be the user, the host or a tag are left."""
        text = without_stand_ins(text)
        for rule in self._rules(names, tags):
            text = rule.pattern.sub(rule.put, text)
        return readable(text)

    def without_known_secrets(self, text: str) -> str:
        """Nothing else is taken out."""
        return text if self._known is None else readable(self._known.pattern.sub(self._known.put, text))

    def _rules(self, names: bool, tags: bool) -> Iterator[Rule]:
        if self._known is not None:
            yield self._known
        yield from CREDENTIALS
        yield from REQUESTS
        models = self._models.rule()
        if models is not None:
            yield models
        yield MODEL_PATH
        if self._homes is not None:
            yield self._homes
        yield from OTHERS_HOMES
        yield from ADDRESSES
        words = self._names.rule(names, tags)
        if words is not None:
            yield words
        if names:
            yield from OTHERS
