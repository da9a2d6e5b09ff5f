"""What a control changed, in the words of the policy's history: `static:4 → off`, `K 4 → 2, fallback off → on`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from engine.policy import WorkloadPolicy, readable
from engine.records import BEGIN_ACTION, PolicyMode
from engine.schedule import ScheduleError

_LONGEST: Final = 80
"""Characters of one value: a schedule or a tag may be long."""
_NAMES: Final = {"k": "K"}


def changed(action: str, workload: str | None, before: str | None, after: str | None) -> str:
    """`before` and `after`: JSON, as the store keeps them; "" where nothing is told of what changed."""
    old, new = ({} if text is None else msgspec.json.decode(text) for text in (before, after))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return ""
    if action == BEGIN_ACTION:
        return _shown(mode_words(new))
    if "mode" in new:
        return f"{_shown(mode_words(old))} → {_shown(mode_words(new))}" if old else _shown(mode_words(new))
    if workload is not None and new.keys() | old.keys() <= {*WorkloadPolicy.__struct_fields__}:
        old, new = _whole(old), _whole(new)
    differing = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    values = [
        f"{_shown(old.get(name))} → {_shown(new.get(name))}" if old else _shown(new.get(name)) for name in differing
    ]
    if differing == [action]:
        return values[0]
    return ", ".join(f"{_NAMES.get(name, name)} {value}" for name, value in zip(differing, values, strict=True))


def _whole(fields: dict[str, Any]) -> dict[str, Any]:
    """A workload's policy with the fields that it leaves out."""
    plain = WorkloadPolicy()
    return {name: getattr(plain, name) for name in WorkloadPolicy.__struct_fields__} | fields


def mode_words(fields: dict[str, Any]) -> str:
    """A recorded mode: `static:4`, `schedule 1-4: 4, 5-32: 1`. One that can't be read, of another version, is named."""
    try:
        return readable(msgspec.convert(fields, PolicyMode))
    except (msgspec.ValidationError, ScheduleError):
        return str(fields.get("mode", "unknown"))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    text = "none" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
