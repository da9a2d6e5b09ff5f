"""The end of the shared engine. Named so that it comes late: whoever comes after has to wait for another start."""

from __future__ import annotations

import pytest

from tests.path.served import Served, until

pytestmark = [pytest.mark.engine, pytest.mark.alone]


def test_stop_leaves_no_process(served: Served) -> None:
    served.wait_serving()
    stopped = served.specdeck("stop")
    assert stopped.returncode == 0, stopped.stderr
    served.process.wait(30)
    until("no process left", lambda: not served.leftovers(), 30.0)
    assert served.specdeck("status").returncode == 3
