"""Tests in several processes: every one is run, engines one after the other, and what measures time alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.side_by_side import ALONE, ENGINE, SideBySide, arrange

Sizes = dict[str, int]


class Worker:
    """As xdist's: it runs what it is given in turn, and the last test only once it knows that none follows."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, indexes: list[int]) -> None:
        assert not self.shutting_down
        self.given += indexes

    def shutdown(self) -> None:
        self.shutting_down = True

    def can_go_on(self) -> bool:
        return len(self.given) > 1 or (self.shutting_down and bool(self.given))


def collected(sizes: Sizes) -> list[str]:
    """Ids as xdist has them: with the group behind an @."""
    suffix = {name: f"@{name}" for name in (ENGINE, ALONE)}
    return [
        f"tests/test_{name}.py::test[{number}]{suffix.get(name, '')}"
        for name, size in sizes.items()
        for number in range(size)
    ]


def scheduler(ids: list[str], processes: int) -> tuple[Any, list[Worker]]:
    option = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(option=option, getvalue=lambda name: ["popen"] * processes)
    made: Any = SideBySide(config)
    workers = [Worker() for _ in range(processes)]
    for worker in workers:
        made.add_node(worker)
        made.add_node_collection(worker, ids)
    made.schedule()
    return made, workers


@given(
    files=st.lists(st.integers(1, 9), max_size=6),
    engine=st.integers(0, 9),
    alone=st.integers(0, 5),
    processes=st.integers(1, 3),
    turns=st.randoms(use_true_random=False),
)
def test_all_are_run_and_the_last_group_has_the_machine_to_itself(
    files: list[int], engine: int, alone: int, processes: int, turns: Any
) -> None:
    sizes = {ENGINE: engine} | {f"file{number}": size for number, size in enumerate(files)} | {ALONE: alone}
    ids = collected({name: size for name, size in sizes.items() if size})
    if not ids:
        return
    made, workers = scheduler(ids, processes)
    places: dict[str, set[int]] = {}
    ran: list[int] = []
    while ready := [number for number, worker in enumerate(workers) if worker.can_go_on()]:
        number = turns.choice(ready)
        test = workers[number].given[0]
        name = ids[test].partition("::")[0]
        if name == "tests/test_alone.py":
            assert not any(worker.given for worker in workers if worker is not workers[number])
        places.setdefault(name, set()).add(number)
        ran.append(test)
        workers[number].given.pop(0)
        made.mark_test_complete(workers[number], test)
    assert sorted(ran) == list(range(len(ids)))
    assert all(len(where) == 1 for where in places.values()), "a file's fixtures are made once"
    if engine and alone:
        assert places["tests/test_engine.py"] == places["tests/test_alone.py"], "the shared engine is there already"


def test_xdist_has_read_the_groups(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("all in one process")
    for one in request.session.items:
        for group in one.iter_markers("xdist_group"):
            assert one.nodeid.endswith(f"@{group.args[0]}")
        assert one.get_closest_marker("engine") is None or one.get_closest_marker("xdist_group")


def test_engines_begin_the_shared_one_last_of_them_and_what_measures_time_ends(request: pytest.FixtureRequest) -> None:
    def item(name: str, *marks: str, fixtures: tuple[str, ...] = ()) -> Any:
        def one() -> None: ...

        made = pytest.Function.from_parent(request.node.parent, name=name, callobj=one)
        for mark in marks:
            made.add_marker(mark)
        made.fixturenames.extend(fixtures)
        return made

    items = [
        item("kill", "engine", "alone", fixtures=("served",)), item("pure"), item("timed", "alone"),
        item("http", "engine", fixtures=("served",)), item("inprocess", "engine"),
    ]  # fmt: skip
    arrange(items)
    assert [one.name for one in items] == ["inprocess", "http", "pure", "timed", "kill"]
    groups = [[mark.args for mark in one.iter_markers("xdist_group")] for one in items]
    assert groups == [[(ENGINE,)], [(ENGINE,)], [], [(ALONE,)], [(ALONE,)]]
