"""`specdeck policy undo` and `confirm`; and how a change is carried out and followed until the engines have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.outcomes import say

if TYPE_CHECKING:
    import msgspec

    from console.feed.messages import EngineView
    from console.feed.protocol import Method

_PATIENCE_SECONDS = 3.0
_LOOK_SECONDS = 0.1
_AT_ONCE_SECONDS = 0.5


@click.command(epilog="Example: specdeck policy undo 17. Without a version: the operator's newest change.")
@click.argument("version", type=int, required=False)
@click.option("--why", default=None, metavar="TEXT", help="For the history.")
@click.option("--expect", type=int, default=None, metavar="VERSION", help="Refuse if the policy is another by now.")
@click.option("--json", "as_json", is_flag=True, help="The policy that holds since, as one JSON object.")
def undo(version: int | None, why: str | None, expect: int | None, as_json: bool) -> None:
    """Put back what the change to policy VERSION changed, if nothing has changed it since.

    Without VERSION: the newest change by an operator that can be undone. Asked again, it goes further back.
    """
    from console.feed.protocol import PolicyUndo

    act("policy_undo", PolicyUndo(version=version, why=why, expect=expect), as_json)


@click.command(epilog="Example: specdeck policy confirm")
@click.argument("version", type=int, required=False)
@click.option("--json", "as_json", is_flag=True, help="The policy that holds since, as one JSON object.")
def confirm(version: int | None, as_json: bool) -> None:
    """What waits to be confirmed stays. With VERSION: only if it is the policy that was seen under it."""
    from console.feed.protocol import PolicyConfirm

    act("policy_confirm", PolicyConfirm(version=version), as_json)


def act(method: Method, params: msgspec.Struct, as_json: bool) -> None:
    """Have the station do it, print the policy that holds since, and say which engines execute it already.

    Raises:
        Unreachable, BadInput, CheckFailed: as `console.cli.station.ask`.
    """
    import msgspec

    from console.cli.policy_text import result_text
    from console.cli.station import ask
    from console.feed.protocol import PolicyResult

    result = ask(method, PolicyResult, params)
    click.echo(msgspec.json.encode(result).decode() if as_json else result_text(result))
    _follow(result.version)
    if result.confirm_by is not None:
        say("it is taken back unless you confirm it: specdeck policy confirm")


def _follow(version: int) -> None:
    """Wait a little until every serving engine has applied it, and say which have. An idle engine does so too."""
    import time

    from console.cli.station import ask
    from console.feed.messages import Snapshot

    began = time.monotonic()
    waiting: set[str] | None = None
    while True:
        serving = [view for view in ask("snapshot", Snapshot).engines if view.state == "serving"]
        waited = time.monotonic() - began
        waiting = {view.engine for view in serving} if waiting is None else waiting
        for view in serving:
            if view.engine in waiting and (view.policy_applied or 0) >= version:
                waiting.discard(view.engine)
                say(f"applied by {view.engine} {'at once' if waited < _AT_ONCE_SECONDS else f'after {waited:.1f} s'}")
        late = [view for view in serving if view.engine in waiting]
        if not late or waited >= _PATIENCE_SECONDS:
            break
        time.sleep(_LOOK_SECONDS)
    for view in late:
        say(_late(view))
    if not serving:
        say("no engine serves now: it gets the policy when one does")


def _late(view: EngineView) -> str:
    if view.policy_error:
        return f"refused by {view.engine}: {view.policy_error}"
    heard = "never heard" if view.last_frame_age is None else f"last heard {view.last_frame_age:.1f} s ago"
    return f"not yet applied by {view.engine} ({heard}): it gets it as soon as it can be reached"
