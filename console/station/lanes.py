"""The lanes that the operator gave workloads: kept in the store, so that they hold again after any restart, and told to
the gateway with every change of the policy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from console.picturing.unconfirmed import settled_part
from console.station.gateway_control import lanes_of
from console.station.gateway_supervisor import GatewaySupervisor
from engine.policy import PolicyState, WorkloadPolicy
from engine.records import Lane

log = logging.getLogger(__name__)

LANES: Final = "lanes"
"""The name under which the store keeps them."""


def read_lanes(kept: bytes | None) -> dict[str, WorkloadPolicy]:
    """What an earlier station kept, as the workloads of a policy; none where there is nothing to be read."""
    if kept is None:
        return {}
    try:
        lanes = msgspec.json.decode(kept, type=dict[str, Lane])
    except msgspec.DecodeError as error:
        log.warning("the lanes that were kept can't be read, no workload has one of its own: %s", error)
        return {}
    return {name: WorkloadPolicy(lane=lane) for name, lane in lanes.items() if lane != "speculative"}


class LaneKeeper:
    """Hears of each change of the policy. What still waits to be confirmed is not kept."""

    def __init__(
        self,
        state: Callable[[], PolicyState],
        gateway: GatewaySupervisor,
        remember: Callable[[str, bytes], None],
    ) -> None:
        """`state`: the policy as it is now. `remember`: keeps bytes under a name for the next station."""
        self._state = state
        self._gateway = gateway
        self._remember = remember
        self._kept = lanes_of(settled_part(state()))
        self._tell_gateway()

    def changed(self, before: PolicyState, after: PolicyState) -> None:
        self._tell_gateway()
        lanes = lanes_of(settled_part(self._state()))
        if lanes != self._kept:
            self._kept = lanes
            self._remember(LANES, msgspec.json.encode(lanes))

    def _tell_gateway(self) -> None:
        state = self._state()
        self._gateway.work_by(state.version, lanes_of(state))
