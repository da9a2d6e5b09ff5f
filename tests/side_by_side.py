"""How `make test` shares the tests out among processes (`-n 2 --dist loadgroup`): a file at a time, but for two groups.

Tests on the real engine follow one another in one process (`ENGINE`), since two engines at once would want the same
cores; other files run beside them. What measures time (marker `alone`) comes last, when nothing else runs, in the
process that has the shared engine already. A failed test of these is named with its group behind an @: leave that off
to run it again. `pytest` by itself, or `make test ARGS="-n 0"`, runs all in one process and in the usual order.
"""

from __future__ import annotations

import atexit
import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

ENGINE, ALONE = "engine", "alone"
ONE_CORE = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""Environment of an engine beside other tests: on all cores each of its threads would wait for the one held up."""


def arrange(items: list[pytest.Item]) -> None:
    """Name each test's group for xdist, and put them into the order in which they are to begin."""
    for item in items:
        if (group := _group(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str | None:
    if item.get_closest_marker("alone"):
        return ALONE
    return ENGINE if item.get_closest_marker("engine") else None


def _turn(item: pytest.Item) -> tuple[bool, bool, bool]:
    """The engines first, since they take longest; of them the shared one last: those after it need it alone."""
    group = _group(item)
    return group == ALONE, group != ENGINE, "served" in getattr(item, "fixturenames", ())


def end_quietly() -> None:
    """Of a process for tests: when it ends, triton's bindings, which come with vLLM, tell of their leaks at length."""
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))


class SideBySide(LoadGroupScheduling):
    """Units of work are files and the two groups; `ALONE`, the last one, waits until the other processes are done."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False  # the order is that of `arrange`
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return group if group in (ENGINE, ALONE) else nodeid.partition("::")[0]

    def _reschedule(self, node: WorkerController) -> None:
        if ALONE in self.workqueue:
            self.workqueue.move_to_end(ALONE)  # behind what a process that crashed has left
        if self._only_alone_is_left():
            node = next((one for one in self.nodes if ENGINE in self.assigned_work[one]), self.nodes[0])
            for other in self.nodes:
                if other is not node and not other.shutting_down:
                    other.shutdown()  # it ends with what it has been given
        super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [work for one, work in self.assigned_work.items() if one is not node]
        if not (self._only_alone_is_left() and any(map(self._pending_of, others))):
            super()._assign_work_unit(node)

    def _only_alone_is_left(self) -> bool:
        return next(iter(self.workqueue), None) == ALONE
