"""What to do with a request that generates text: which engine gets it, and with which body."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from console.gateway import failures
from console.gateway.body import NoPlace, read_body, rewritten
from console.gateway.failures import Refusal
from console.gateway.headers import Headers, first
from console.gateway.hints import DISABLE, WORKLOAD, HintRefused, Hints, all_hints, header_hints
from console.gateway.lanes import Lanes
from console.gateway.unsupported import refused_with_speculation

GENERATING: Final = frozenset(
    ("/v1/chat/completions", "/v1/chat/completions/batch", "/v1/completions", "/v1/responses", "/v1/messages")
)
"""Paths whose JSON body vLLM 0.32 reads `vllm_xargs` from."""

Vanilla = Literal["lane", "hint", "parameters"]


class Plan(NamedTuple):
    """`vanilla`: why the engine without speculation is to answer, None where the other one is."""

    body: bytes
    vanilla: Vanilla | None = None
    tag_put: bool = False
    hinted: bool = False
    lost: bool = False
    """A tag or hint of the headers could not be put into the body."""


def readable(method: str, path: str, headers: Headers) -> bool:
    """Whether the body is one that the gateway may have to change: what vLLM itself would read as JSON."""
    if method != "POST" or path not in GENERATING:
        return False
    media_type = (first(headers, b"content-type") or b"").partition(b";")[0].strip().lower()
    return media_type == b"application/json"


def plan(path: str, headers: Headers, raw: bytes, lanes: Lanes, *, vanilla_engine: bool, speculation: bool) -> Plan:
    """Decide about one request. `speculation`: the engine drafts; `vanilla_engine`: beside it is one that doesn't.

    Raises:
        Refusal: a malformed hint, or parameters that no engine here takes.
    """
    body = read_body(raw)
    try:
        header = header_hints(headers)
        if body is None:
            return Plan(raw, hinted=header.disable, lost=bool(header))
        hints = all_hints(header, body)
    except HintRefused as error:
        raise Refusal(failures.malformed_hint(error.place, error.came), "refused", "hints_rejected") from error
    refused = refused_with_speculation(path, body.get) if speculation else ()
    if refused and not vanilla_engine:
        raise Refusal(failures.unsupported_parameters(refused), "refused", "unsupported")
    vanilla: Vanilla | None = None
    if vanilla_engine:
        vanilla = "parameters" if refused else _by_choice(hints, lanes)
    try:
        new = rewritten(body, hints.missing, without=DISABLE)
    except NoPlace:
        return Plan(raw, vanilla, hinted=hints.disable, lost=True)
    return Plan(new, vanilla, tag_put=WORKLOAD in hints.missing, hinted=hints.disable)


def _by_choice(hints: Hints, lanes: Lanes) -> Vanilla | None:
    """What the operator or the client wants served without speculation, though the other engine could: at K = 0."""
    if lanes.of(hints.workload) == "vanilla":
        return "lane"
    return "hint" if hints.disable else None
