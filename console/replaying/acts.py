"""What an operator does to a replay's clock: one small function an act."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from console.feed.messages import ReplayView
from console.feed.protocol import ReplayAct
from console.feed.server import FeedError
from console.replaying.clock import Clock, ClockError
from console.replaying.marks import neighbour
from console.replaying.player import Player
from store.moments import step_end

MOST_AT_ONCE: Final = 1_000_000
"""Steps or marks that can be gone by at once."""


def replay_act(player: Player, params: ReplayAct) -> ReplayView:
    """Move the clock; where the replay stands then. Reads the store: not on the event loop.

    Raises:
        FeedError: what is asked for names no moment, speed or stretch.
    """
    if not 0 < abs(params.count) <= MOST_AT_ONCE:
        raise FeedError("bad_params", f"replay_act: count must be 1 to {MOST_AT_ONCE}, or as far back")
    try:
        return player.act(partial(_ACTS[params.act], player, params))
    except ClockError as error:
        raise FeedError("bad_params", f"replay_act: {error}") from error


Act = Callable[[Player, ReplayAct, Clock, float], None]


def _play(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    clock.play(wall)


def _pause(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    clock.pause(wall)


def _toggle(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    (clock.pause if clock.playing else clock.play)(wall)


def _step(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    """To the end of a step. Where there is none left, it stays."""
    clock.pause(wall)
    with player.opened.reading() as connection:
        end = step_end(connection, clock.ts, params.count)
    if end is not None:
        clock.seek(end, wall)


def _seek(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    if params.ts is not None:
        clock.seek(params.ts, wall)
    elif params.share is not None and math.isfinite(params.share):
        clock.seek(clock.start + params.share * (clock.end - clock.start), wall)
    else:
        raise ClockError("seek needs a moment: ts in Unix seconds, or share of the span")


def _jump(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    """To a mark, all of them counted, shown or not, and hold there: a fast replay would be past it at once. Where there
    is none that way, it goes on."""
    clock.tick(wall)
    mark = neighbour(player.timeline.marks, params.kind, clock.ts, params.count)
    if mark is not None:
        clock.pause(wall)
        clock.seek(mark.ts, wall)


def _speed(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    clock.set_speed(params.speed, wall)


def _loop(player: Player, params: ReplayAct, clock: Clock, wall: float) -> None:
    clock.set_loop(params.loop, wall)


_ACTS: Final[dict[str, Act]] = {
    "play": _play,
    "pause": _pause,
    "toggle": _toggle,
    "step": _step,
    "seek": _seek,
    "jump": _jump,
    "speed": _speed,
    "loop": _loop,
}
