"""The command beside a live figure, asked of the running station, gives what its console shows."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from console.app.explaining.bucket import bucket_sections
from console.app.explaining.command import command_lines
from console.app.explaining.section import Query, Section
from console.app.explaining.status import status_sections
from console.app.live.columns import RowFacts
from console.app.picture import Link, Picture
from console.cli.sql import sql
from console.feed.messages import Snapshot
from tests.console.station_harness import StationUnderTest, start_own_engine


def asked(sections: list[Section], title: str) -> list[dict[str, Any]]:
    """What the command of a section prints."""
    section = next(one for one in sections if one.title.startswith(title))
    query = next(block for block in section.blocks if isinstance(block, Query))
    words = shlex.split("\n".join(command_lines(query.sql, query.source, 69)))
    told = CliRunner().invoke(sql, [*words[2:], "--json"])
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)  # type: ignore[no-any-return]


def test_rates_n_mix_and_telemetry_of_a_station_that_has_come_to_rest(place: Path) -> None:
    station = StationUnderTest(place, engine=False).start()
    try:
        own = start_own_engine(station.run_dir, "mine")
        try:
            station.wait(lambda seen: any((one.figures.steps or 0) > 40 for one in seen.buckets), "rows")
        finally:
            own.kill()
            own.wait()
        rest = at_rest(station)
        bucket = max(rest.buckets, key=lambda one: one.figures.steps)
        sections, figures = bucket_sections(RowFacts(bucket, rest.ts), rest), bucket.figures
        (rates,) = asked(sections, "Acceptance rate")
        counted = (figures.steps, figures.accepted, figures.emitted)
        assert (rates["steps"], rates["accepted"], rates["emitted"]) == counted
        assert rates["alpha"] == pytest.approx(figures.alpha, abs=1e-9)
        (spread,) = asked(sections, "Interval of α")
        assert spread["sequences"] == figures.sequences
        mix: dict[str, int] = {}
        for line in asked(sections, "K executed"):
            mix[line["set_by"]] = mix.get(line["set_by"], 0) + line["decode_rows"]
        assert mix == figures.limit_histogram
        (rate,) = asked(sections, "tokens/s")
        assert rate["tokens_per_second"] == pytest.approx(figures.tokens_per_second, abs=1e-9)
        (lost,) = asked(status_sections(Picture(Link("connected", rest.ts), rest.ts, snapshot=rest)), "Telemetry loss")
        assert (lost["gaps"], lost["quarantined"]) == (rest.loss.gaps, rest.loss.quarantined)
    finally:
        station.close()


def at_rest(station: StationUnderTest) -> Snapshot:
    """A picture after which no more rows come."""
    rows = -1
    while True:
        seen = station.wait(lambda _: True, "a picture")
        if seen.store.rows == rows:
            return seen
        rows = seen.store.rows
        time.sleep(1.0)
