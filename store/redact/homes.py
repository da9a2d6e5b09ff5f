"""Rules for home directories: the operator's, which is `~`, and other people's, whose names go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from store.redact.rule import HOME, USER, Rule, rule

OTHERS_HOMES: Final = (
    rule(r"""([/\\](?:home|Users)[/\\]{1,2})[^/\\\s'",:;)\]}]+""", r"\1" + USER),
    rule(r"(?<![\w/~])(~)[a-z_][\w.-]*(?=/)", r"\1" + USER),
)


def own_homes(homes: Iterable[str]) -> Rule | None:
    paths = sorted({home.rstrip("/") for home in homes} - {""}, key=len, reverse=True)
    if not paths:
        return None
    return Rule(re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, paths))})(?![\w-])(?!\.\w)"), HOME)
