"""Identities of models. One that is named by its folder is reduced to its last part: paths name people, too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from store.redact.rule import Rule, rule

_PATH: Final = r"""(?:~|\.{1,2})?/[^\s'",;)\]}]+"""


def _last_part(found: re.Match[str]) -> str:
    return found[1] + (found[2].rstrip("/").rpartition("/")[2] or found[2])


MODEL_PATH: Final = rule(
    rf"""((?:model|tokenizer|drafter|adapter|lora|checkpoint|download_dir)\w{{0,20}}[\\'"]{{0,2}}(?:\s{{0,3}}[=:,]\s{{0,3}}|\s{{1,4}})[\\'"]{{0,2}})({_PATH})""",
    _last_part,
)
"""Behind a word that says that it is one."""


class ModelPaths:
    """Paths of models that are known: they go wherever they stand."""

    def __init__(self, identities: Iterable[str] = ()) -> None:
        self._paths: set[str] = set()
        self._rule: Rule | None = None
        self.meet(identities)

    def meet(self, identities: Iterable[str]) -> None:
        """Keep the paths of the models that are named by one."""
        found = {path for path in (_head(identity).rstrip("/") for identity in identities) if _is_path(path)}
        if not found <= self._paths:
            self._paths |= found
            self._rule = None

    def rule(self) -> Rule | None:
        """None where no path is known."""
        if self._rule is None and self._paths:
            longest_first = "|".join(map(re.escape, sorted(self._paths, key=len, reverse=True)))
            pattern = re.compile(rf"(?<![\w.-])(?:{longest_first})(?![\w-])(?!\.\w)")
            self._rule = Rule(pattern, lambda found: found[0].rpartition("/")[2])
        return self._rule


def short_model(identity: str) -> str:
    """The identity, of a path only its last part."""
    head = _head(identity)
    if not _is_path(head):
        return identity
    return (head.rstrip("/").rpartition("/")[2] or head) + identity[len(head) :]


def _head(identity: str) -> str:
    """What of `NAME@FINGERPRINT:…` may be a path. A path may hold an @ itself, what follows a name no slash."""
    head, _, rest = identity.partition("@")
    return identity if "/" in rest and head.startswith(("/", "~", ".")) else head


def _is_path(text: str) -> bool:
    """Whether a model is named by its folder and not as `org/name`."""
    return text.startswith(("/", "./", "../", "~")) or text.count("/") > 1
