"""The replay keys' methods, for the app: they work on every screen."""

from __future__ import annotations

from console.app.frame.guard import guarded
from console.app.replay.desk import ReplayDesk


class ReplayKeys:
    """Part of `SpecdeckApp`."""

    replay_desk: ReplayDesk

    @guarded
    def action_play(self) -> None:
        self.replay_desk.toggle()

    @guarded
    def action_step_on(self) -> None:
        self.replay_desk.step(1)

    @guarded
    def action_step_back(self) -> None:
        self.replay_desk.step(-1)

    @guarded
    def action_faster(self) -> None:
        self.replay_desk.speed(1)

    @guarded
    def action_slower(self) -> None:
        self.replay_desk.speed(-1)

    @guarded
    def action_next_alert(self) -> None:
        self.replay_desk.jump("alert", 1)

    @guarded
    def action_previous_alert(self) -> None:
        self.replay_desk.jump("alert", -1)

    @guarded
    def action_next_control(self) -> None:
        self.replay_desk.jump("control", 1)

    @guarded
    def action_previous_control(self) -> None:
        self.replay_desk.jump("control", -1)

    @guarded
    def action_next_version(self) -> None:
        self.replay_desk.jump("version", 1)

    @guarded
    def action_previous_version(self) -> None:
        self.replay_desk.jump("version", -1)

    @guarded
    def action_to_start(self) -> None:
        self.replay_desk.edge(0.0)

    @guarded
    def action_to_end(self) -> None:
        self.replay_desk.edge(1.0)

    @guarded
    def action_go(self) -> None:
        self.replay_desk.go()

    @guarded
    def action_loop(self) -> None:
        self.replay_desk.loop()

    @guarded
    def action_what_if(self) -> None:
        self.replay_desk.what_if()
