"""`specdeck policy set`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from console.cli.outcomes import BadInput
from console.cli.policy_map import MAP_WORD, from_map

if TYPE_CHECKING:
    from console.feed.protocol import PolicySet

_LANES = ("vanilla", "speculative")


@click.command("set", epilog="Example: specdeck policy set 'schedule:[[1,16,3],[17,128,0]]' --confirm 5m")
@click.argument("mode", required=False)
@click.option("--cap", metavar="N|none", default=None, help="No sequence drafts more than N tokens.")
@click.option("--fallback", type=click.Choice(["on", "off"]), default=None, help="on: no speculation for anybody.")
@click.option(
    "--lane", "lanes", multiple=True, metavar="WORKLOAD=LANE",
    help="Send a workload to the vanilla lane, or back to the speculative one; repeatable.",
)  # fmt: skip
@click.option(
    "--confirm", metavar="SPAN", default=None,
    help="Take it back unless `specdeck policy confirm` comes within SPAN (30s, 5m, 1h), or at once if it is slower.",
)  # fmt: skip
@click.option("--why", default=None, metavar="TEXT", help="For the history.")
@click.option("--expect", type=int, default=None, metavar="VERSION", help="Refuse if the policy is another by now.")
@click.option("--force", is_flag=True, help="With map: also a map that was made with something else than what runs.")
@click.option("--json", "as_json", is_flag=True, help="The policy that holds since, as one JSON object.")
def set_(
    mode: str | None,
    cap: str | None,
    fallback: str | None,
    lanes: tuple[str, ...],
    confirm: str | None,
    why: str | None,
    expect: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Change the policy of the running station: MODE, cap, fallback, lanes. What is not named stays as it is.

    MODE is off, static:K, schedule:SCHEDULE, adaptive, advise, or map: the schedule that the operating map proposes.
    """
    if not (mode or cap or fallback or lanes or confirm):
        raise BadInput("nothing to set: give a MODE, --cap, --fallback or --lane (`specdeck policy get` shows them)")
    from console.cli.policy_acts import act

    if force and mode != MAP_WORD:
        raise BadInput("--force: only `specdeck policy set map` can be forced")
    act("policy_set", _params(mode, cap, fallback, lanes, confirm, why, expect, force), as_json)


def _params(
    mode: str | None,
    cap: str | None,
    fallback: str | None,
    lanes: tuple[str, ...],
    confirm: str | None,
    why: str | None,
    expect: int | None,
    force: bool,
) -> PolicySet:
    """Raises BadInput."""
    from console.cli.spans import parse_span
    from console.feed.protocol import PolicySet
    from engine.policy import PolicyError, parse_mode

    changes: dict[str, Any] = {}
    if mode == MAP_WORD:
        changes["policy"], why = from_map(force, why)
    elif mode is not None:
        try:
            changes["policy"] = parse_mode(mode)
        except PolicyError as error:
            raise BadInput(str(error)) from error
    if cap is not None:
        changes["cap"] = _cap(cap)
    if fallback is not None:
        changes["fallback"] = fallback == "on"
    return PolicySet(
        lanes=dict(_lane(text) for text in lanes), confirm=parse_span(confirm), why=why, expect=expect, **changes
    )


def _cap(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadInput(f"--cap {text}: a whole number of tokens, or none")
    return int(text)


def _lane(text: str) -> tuple[str, Any]:
    workload, equals, lane = text.rpartition("=")
    if not equals or not workload or lane not in _LANES:
        raise BadInput(f"--lane {text}: write WORKLOAD=vanilla or WORKLOAD=speculative")
    return workload, lane
