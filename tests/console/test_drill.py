"""`specdeck drill`: what rows say of a way out, and the drill itself on an engine that hears hints and lanes or not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from console.cli.station import ask
from console.feed.certificate import Certificate
from console.feed.messages import CertificateView
from console.feed.protocol import DrillDone, RequestRow, RequestRows
from console.rehearsing.filing import file_certificate
from console.rehearsing.proving import faults, faults_beside, unprovable
from engine.records import PolicyMode
from tests.console.rehearsing_station import RehearsingStation, invoked, rehearsing_station
from tests.console.test_drills import certificate

STATIC = PolicyMode(mode="static", k=4)


def rows(*made: RequestRow, engine: str = "e0") -> RequestRows:
    return RequestRows(
        request="cmpl-1", engine=engine, workload="drill", disable_speculation=False, lane="speculative",
        rows=[row(9, cause="prefill"), *made],
    )  # fmt: skip


def row(step: int, k: int = 0, limit: str = "max", drafted: int = 0, cause: str = "none") -> RequestRow:
    return RequestRow(step, k, limit, drafted, 0, 1, cause)


def test_no_draft_and_the_right_term_in_every_row_is_a_way_out() -> None:
    assert list(faults(rows(row(10, limit="hint"), row(11, limit="hint")), "hint", "e0")) == []


def test_a_single_draft_token_is_a_fault_that_names_its_step() -> None:
    found = list(faults(rows(row(10, limit="hint"), row(11, 4, "hint", 1, "full")), "hint", "e0"))
    assert found == ["draft tokens: 1, in 1 of 3 rows, the first in step 11"]


def test_no_draft_by_another_term_is_a_fault() -> None:
    (found,) = faults(rows(row(10, limit="hint"), row(11, limit="schedule")), "hint", "e0")
    assert found == "of 2 decode rows the limit is `schedule` in 1, not `hint`"


def test_rows_of_the_engine_without_speculation_need_no_term() -> None:
    assert list(faults(rows(row(10, limit="max"), engine="v0"), "lane", "e0")) == []


def test_a_request_without_decode_rows_shows_nothing() -> None:
    assert list(faults(rows(), "hint", "e0")) == ["no decode row of the request was recorded"]


def test_a_neighbour_counts_only_where_it_ran_in_the_same_steps() -> None:
    forced = rows(row(10, limit="hint"), row(11, limit="hint"))
    drafting = (row(11, 4, "static", 4, "full"), row(50, 4, "static", 4, "full"))
    assert list(faults_beside(forced, rows(*drafting))) == []
    assert "no request ran beside it" in next(faults_beside(forced, rows(drafting[1])))


@pytest.mark.parametrize("touched", [row(10, limit="hint"), row(10, limit="static", cause="no_proposal")])
def test_a_neighbour_that_drafts_nothing_is_a_fault(touched: RequestRow) -> None:
    forced = rows(row(10, limit="hint"))
    assert "beside it drafted 0 tokens" in next(faults_beside(forced, rows(touched)))


def test_what_drafts_nothing_anyway_proves_nothing_and_says_why() -> None:
    assert unprovable(rows(row(10, 4, "static", 3, "full"))) is None
    assert "limit `operator`" in (unprovable(rows(row(10, limit="operator"))) or "")
    assert "K up to 4 was asked" in (unprovable(rows(row(10, 4, "static", 0, "no_proposal"))) or "")


def test_certificates_of_one_second_are_two_files(tmp_path: Path) -> None:
    first, second = (file_certificate(certificate(), tmp_path / "new") for _ in range(2))
    assert first != second
    assert msgspec.json.decode(second.read_bytes(), type=Certificate) == certificate()


@pytest.fixture(scope="module")
def station() -> Iterator[RehearsingStation]:
    with rehearsing_station() as running:
        yield running


def test_every_way_out_works_and_the_certificate_is_filed_and_shown(station: RehearsingStation) -> None:
    done = station.run("drill", "--all", "--yes", "--json")
    assert done.code == 0, done
    found = msgspec.json.decode(done.stdout, type=Certificate)
    assert [(way.way, list(way.limits)) for way in found.ways] == [
        ("hint-header", ["hint"]), ("hint-body", ["hint"]), ("hint-xargs", ["hint"]), ("lane", ["lane"]),
        ("cap", ["cap"]), ("operator-fallback", ["operator"]), ("mode-off", ["off"]), ("back", ["static"]),
    ]  # fmt: skip
    assert all(way.drafted == 0 and way.rows > 5 for way in found.ways[:-1])
    assert found.ways[-1].drafted > 0
    (file,) = (station.folder / "data" / "certificates").glob("drill-*.json")
    assert json.loads(file.read_bytes()) == done.json
    after = station.snapshot()
    assert (after.policy, after.cap, after.fallback, after.unconfirmed) == (STATIC, None, False, None)
    assert all(view.lane == "speculative" for view in after.workloads)
    assert after.certificate is not None
    assert (after.certificate.passed, after.certificate.stale) == (True, None)
    assert after.certificate.text == "drill passed: all 7 ways out that were tried work"


def test_an_engine_that_hears_no_hint_fails_the_drill(station: RehearsingStation) -> None:
    with station.behaving("deaf"):
        done = station.run("drill")
    assert done.code == 1
    assert done.stdout.count("FAILED") == 4
    assert "draft tokens: " in done.stdout
    after = station.snapshot()
    assert after.certificate is not None
    assert after.certificate.text.startswith("drill FAILED: hint-header")
    assert (after.policy, after.unconfirmed) == (STATIC, None)


def test_where_nothing_drafts_nothing_is_certified(station: RehearsingStation) -> None:
    before = station.snapshot().certificate
    station.policy(fallback=True)
    try:
        done = station.run("drill")
    finally:
        station.policy(fallback=False)
    assert done.code == 1
    assert "not provable now: without a way out K is 0 already (limit `operator`)" in done.stderr
    assert station.snapshot().certificate == before


def test_what_touches_everybody_is_asked_for_first(station: RehearsingStation) -> None:
    done = station.run("drill", "--all")
    assert done.code == 2
    assert "say --yes" in done.stderr


def test_what_is_no_certificate_is_refused(station: RehearsingStation) -> None:
    with pytest.raises(Exception, match="no certificate"):
        ask("drill_done", CertificateView, DrillDone(certificate={"passed": True}))


def test_a_new_station_shows_the_last_certificate_stale_where_it_is_of_another_model(
    station: RehearsingStation,
) -> None:
    old = certificate(ts=time.time())
    ask("drill_done", CertificateView, DrillDone(certificate=msgspec.to_builtins(old)))
    station.station.wait(lambda seen: any("drill passed" in event.text for event in seen.events), "the event of it")
    assert station.station.terminate() == 0
    station.station.start()
    shown = station.station.wait(lambda seen: seen.certificate is not None and seen.certificate.stale is not None, "it")
    assert shown.certificate is not None
    assert shown.certificate.ts == old.ts
    assert "another version serves now" in (shown.certificate.stale or "")


def test_without_a_station_it_exits_3(place: object) -> None:
    assert invoked("drill").code == 3
