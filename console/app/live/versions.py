"""Short words that tell the model versions on a screen apart: only the parts in which they differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_PRINT: Final = re.compile(r"^(.*?)@([0-9a-f]{6})[0-9a-f]*(:.*)?$")


def telling(versions: Iterable[str]) -> dict[str, str]:
    """Of each version (`target | drafter | method | vllm 0.32.0`) the parts that are not the same in all of them; of a
    model its name where these differ, else the beginning of its fingerprint, else what follows it."""
    known = sorted(set(versions))
    parts = {version: version.split(" | ") for version in known}
    if len({len(found) for found in parts.values()}) != 1:
        return {version: version for version in known}
    columns = [_shorter(column) for column in zip(*parts.values(), strict=True)]
    differing = [column for column in columns if len(set(column)) > 1]
    return {version: " ".join(column[place] for column in differing) for place, version in enumerate(known)}


def _shorter(column: tuple[str, ...]) -> list[str]:
    """One part of all versions."""
    found = [_PRINT.match(part) for part in column]
    if len(set(column)) == 1 or not all(found):
        return list(column)
    names, prints, rests = (
        [match[group] or "" for match in found if match is not None] for group in (1, 2, 3)
    )  # fmt: skip
    if len(set(names)) == len(set(column)):
        return names
    return prints if len(set(prints)) > 1 else [rest.strip(":") for rest in rests]
