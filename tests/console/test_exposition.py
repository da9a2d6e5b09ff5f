"""The station's own /metrics, read by Prometheus' own parser: what is there is right, bounded and documented; what is
not known is not there."""

from __future__ import annotations

import asyncio
import math
import re
import socket
from collections import Counter
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from console.feed.messages import GatewayView, LossView, Snapshot
from console.station.exposition import exposition
from console.station.metrics_server import MetricsServer
from store.figures import BucketKey
from tests.console import scenes
from tests.console.station_harness import free_port

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
ALL = BucketKey(None, None, None, None)
SPEEDUP = {"speedup": 1.31, "speedup_low": 1.22, "speedup_high": 1.4, "speedup_state": "ok"}

COMPLETE = scenes.live(
    buckets=[scenes.bucket(scenes.key("code"), 0.53, 96.1, **SPEEDUP)],
    total=scenes.figures(ALL, 0.55, 220.4, **SPEEDUP),
    alerts=scenes.alerting().alerts,
    loss=LossView(gaps=1, frames_lost=12, quarantined=3, unattributed=4, broken_messages=5),
    gateway=GatewayView(
        "http://127.0.0.1:8000",
        "serving",
        4300,
        100,
        1,
        unavailable=2,
        refused=9,
        hints_seen=7,
        hints_rejected=3,
        unsupported=4,
        vanilla_engine=True,
        vanilla_ok=True,
        vanilla_requests=20,
        vanilla_spilled=5,
    ),
)
"""Every figure has a value."""

SCENES = [COMPLETE, scenes.live(), scenes.no_bucket(), scenes.starting(), scenes.alerting(), scenes.mismatched()]

FIGURES = {
    "acceptance_rate": "alpha",
    "acceptance_rate_low": "alpha_low",
    "acceptance_rate_high": "alpha_high",
    "pooled_acceptance": "pooled_acceptance",
    "conditional_acceptance": "conditional_acceptance",
    "mean_acceptance_length": "mean_acceptance_length",
    "waste_ratio": "waste_ratio",
    "drafted_share": "drafted_share",
    "realised_speedup": "speedup",
    "realised_speedup_low": "speedup_low",
    "realised_speedup_high": "speedup_high",
    "tokens_per_second": "tokens_per_second",
    "sequences": "sequences",
}
"""Name of a family and the figure that it shows, which may be absent."""


def families(snapshot: Snapshot) -> dict[str, Metric]:
    """By name as served. A family that comes twice is an error, as it is for Prometheus."""
    found = list(text_string_to_metric_families(exposition(snapshot).decode()))
    named = {f"{family.name}_total" if family.type == "counter" else family.name: family for family in found}
    assert len(named) == len(found)
    return named


def samples(snapshot: Snapshot) -> list[Sample]:
    return [sample for family in families(snapshot).values() for sample in family.samples]


def values(snapshot: Snapshot) -> dict[str, float]:
    """Of samples whose name alone tells them apart."""
    return {sample.name: sample.value for sample in samples(snapshot)}


@pytest.mark.parametrize("snapshot", SCENES)
def test_whatever_the_station_shows_there_is_no_nan_and_no_series_twice(snapshot: Snapshot) -> None:
    found = samples(snapshot)
    assert all(math.isfinite(sample.value) for sample in found)
    assert max(Counter((sample.name, *sorted(sample.labels.items())) for sample in found).values()) == 1


def test_every_family_is_documented_with_its_type_labels_and_meaning() -> None:
    rows = re.findall(r"^\| `(specdeck_\w+)` \| (\w+) \| ([^|]+) \| (.+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    documented = {
        (name, kind, frozenset(() if labels == "–" else labels.split(", ")), meaning)
        for name, kind, labels, meaning in rows
    }
    assert len(documented) == len(rows)
    served = set()
    for name, family in families(COMPLETE).items():
        (labels,) = {frozenset(sample.labels) for sample in family.samples}
        served.add((name, family.type, labels, family.documentation))
    assert documented == served


def test_a_bucket_is_shown_under_its_four_keys() -> None:
    (found,) = families(COMPLETE)["specdeck_bucket_acceptance_rate"].samples
    key = COMPLETE.buckets[0].key
    assert found.value == 0.53
    assert BucketKey(**found.labels) == key
    shares = families(COMPLETE)["specdeck_bucket_k_share"].samples
    assert {sample.labels["k"]: sample.value for sample in shares} == {"0": 0.02, "2": 0.1, "3": 0.18, "4": 0.7}


def test_losses_engines_alerts_and_store_are_shown() -> None:
    found = values(COMPLETE)
    assert found["specdeck_frames_lost_total"] == 12
    assert found["specdeck_gaps_total"] == 1
    assert found["specdeck_rows_quarantined_total"] == 3
    assert found["specdeck_rows_unattributed_total"] == 4
    assert found["specdeck_messages_broken_total"] == 5
    assert found["specdeck_rows_total"] == COMPLETE.store.rows
    assert found["specdeck_recording"] == 1
    assert (found["specdeck_engine_up"], found["specdeck_engine_executed_k"]) == (1, 4)
    firing = {
        (sample.labels["kind"], sample.labels["severity"]): sample.value
        for sample in families(COMPLETE)["specdeck_alerts_firing"].samples
    }
    assert firing == {("telemetry_loss", "warn"): 1, ("engine_down", "critical"): 1, ("drift", "warn"): 1}
    assert values(scenes.alerting())["specdeck_engine_up"] == 0


@given(st.sets(st.sampled_from(sorted(set(FIGURES.values())))))
@settings(max_examples=40)
def test_a_figure_that_is_absent_has_no_sample_and_the_others_are_as_they_are(absent: set[str]) -> None:
    blank = dict.fromkeys(absent)
    bucket = replace(COMPLETE.buckets[0], figures=replace(COMPLETE.buckets[0].figures, **blank))
    assert COMPLETE.total is not None
    snapshot = replace(COMPLETE, buckets=[bucket], total=replace(COMPLETE.total, **blank))
    found = values(snapshot)
    for name, field in FIGURES.items():
        assert found.get(f"specdeck_bucket_{name}") == getattr(bucket.figures, field), name
        assert found.get(f"specdeck_all_{name}") == getattr(snapshot.total, field), name


def test_a_station_without_traffic_shows_no_figures() -> None:
    assert not [name for name in values(scenes.no_bucket()) if name.startswith(("specdeck_bucket", "specdeck_all"))]


@given(st.text(max_size=60) | st.sampled_from([scenes.HOSTILE, 'x"} 1\nspecdeck_engine_up{engine="e0"} 0', "\\n\\"]))
def test_a_tag_is_a_label_whatever_is_in_it(tag: str) -> None:
    bucket = scenes.bucket(scenes.key(tag), 0.5, 1.0)
    snapshot = scenes.live(buckets=[bucket], engines=[scenes.engine(engine=tag)])
    found = families(snapshot)
    (rate,) = found["specdeck_bucket_acceptance_rate"].samples
    (up,) = found["specdeck_engine_up"].samples
    assert (rate.labels["workload"], up.labels["engine"]) == (tag, tag)
    assert (rate.value, up.value) == (0.5, 1)
    assert found.keys() == families(scenes.live()).keys(), "nothing that a tag says becomes a series"


def test_what_the_gateway_counts_is_shown_and_absent_where_there_is_none() -> None:
    found = {name.removeprefix("specdeck_gateway_"): value for name, value in values(COMPLETE).items()}
    expected = {
        "requests": 100, "errors": 1, "unavailable": 2, "refused": 9, "hints": 7, "hints_malformed": 3,
        "unsupported": 4, "vanilla": 20, "vanilla_spilled": 5,
    }  # fmt: skip
    assert {name: found[f"{name}_total"] for name in expected} == expected
    assert (found["up"], found["vanilla_up"]) == (1, 1)
    alone = values(scenes.live())
    assert alone["specdeck_gateway_up"] == 1
    assert "specdeck_gateway_vanilla_up" not in alone
    observed = values(replace(COMPLETE, gateway=None))
    assert not [name for name in observed if name.startswith("specdeck_gateway")]


def test_series_are_bounded_by_buckets_and_draft_lengths_and_carry_no_free_text() -> None:
    crowd = scenes.live(buckets=scenes.many_buckets(200), alerts=scenes.alerting().alerts)
    found = samples(crowd)
    of_buckets = [sample for sample in found if "workload" in sample.labels]
    lengths = len(crowd.buckets[0].k_mix)
    assert len(of_buckets) <= 200 * (len(FIGURES) + 2 + lengths)
    assert len(found) - len(of_buckets) <= 60
    names = {name for sample in found for name in sample.labels}
    assert names == {"workload", "context", "temperature", "model_version", "k", "engine", "kind", "severity"}
    shown = {value for sample in found for value in sample.labels.values()}
    told = {alert.text for alert in crowd.alerts} | {event.text for event in crowd.events} | {crowd.store.path}
    assert not shown & told


# Over HTTP


async def test_it_is_served_on_this_machine_once_there_is_a_picture() -> None:
    pictures: list[Snapshot] = []
    server = MetricsServer(free_port(), lambda: pictures[-1] if pictures else None)
    serving = asyncio.create_task(server.run())
    async with httpx.AsyncClient(trust_env=False) as client:
        early = await _answer(client, server.url)
        assert early.status_code == 503
        pictures.append(COMPLETE)
        answer = await client.get(server.url)
        elsewhere = await client.get(server.url.removesuffix("/metrics"))
    assert answer.content == exposition(COMPLETE)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert elsewhere.status_code == 404
    assert "127.0.0.1" in server.url
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_a_port_that_is_taken_is_told_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        server = MetricsServer(holder.getsockname()[1], lambda: COMPLETE)
        serving = asyncio.create_task(server.run())
        done, _ = await asyncio.wait([serving], timeout=0.2)
        assert not done
        assert caplog.text.count("--metrics-port") == 1
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def _answer(client: httpx.AsyncClient, url: str) -> httpx.Response:
    """The first answer of a server that is coming up."""
    for _ in range(200):
        try:
            return await client.get(url)
        except httpx.ConnectError:
            await asyncio.sleep(0.05)
    raise AssertionError(f"{url} never answered")
