"""The ways out of speculation: how each is forced, and which policy term its rows must then name."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from console.feed.certificate import WayName
from console.rehearsing.terms import Terms
from engine.records import Limit, PolicyMode

TAG: Final = "drill"
BESIDE: Final = "drill-beside"
"""Tag of a neighbour that the lane of `TAG` must not touch."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """`header` and `body` are added to the forced request; `policy` is borrowed while it runs. `beside`: the tag of a
    neighbour that must go on drafting; None where the way is everybody's."""

    name: WayName
    shown: str
    limit: Limit
    header: dict[str, str] = {}
    body: dict[str, Any] = {}
    policy: Terms | None = None
    beside: str | None = None


OWN_WAYS: Final = (
    Way(
        name="hint-header", shown="header x-disable-speculation", limit="hint",
        header={"x-disable-speculation": "1"}, beside=TAG,
    ),
    Way(
        name="hint-body", shown="body field disable_speculation", limit="hint",
        body={"disable_speculation": True}, beside=TAG,
    ),
    Way(
        name="hint-xargs", shown="vllm_xargs.disable_speculation", limit="hint",
        body={"vllm_xargs": {"disable_speculation": 1}}, beside=TAG,
    ),
    Way(
        name="lane", shown=f"vanilla lane for workload {TAG}", limit="lane",
        policy=Terms(lanes={TAG: "vanilla"}), beside=BESIDE,
    ),
)  # fmt: skip
"""They touch nobody's requests but the drill's."""

WAYS_FOR_ALL: Final = (
    Way(name="cap", shown="operator's cap 0", limit="cap", policy=Terms(cap=0)),
    Way(name="operator-fallback", shown="operator's fallback", limit="operator", policy=Terms(fallback=True)),
    Way(name="mode-off", shown="mode off", limit="off", policy=Terms(policy=PolicyMode(mode="off"))),
)
"""While one is tried, nobody speculates."""
