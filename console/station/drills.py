"""The last drill's certificate: kept in the history, shown, and stale once something else serves."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

import duckdb
import msgspec

from console.feed.certificate import Certificate
from console.feed.messages import CertificateView
from console.feed.protocol import DrillDone
from console.feed.server import FeedError
from console.station.recorder import Recorder
from engine.records import ControlRecord, EngineRecord
from store.buckets import model_version, short_version
from store.certificates import DRILL, last_certificate

if TYPE_CHECKING:
    from console.station.station import Station

log = logging.getLogger(__name__)

FRESH_SECONDS: Final = 7 * 86_400.0
"""After so long a drill says little: it is to be made weekly."""


class Drills:
    """The last one, also where an earlier station saw it."""

    def __init__(self, recorder: Recorder) -> None:
        self.last = _recalled(recorder)

    def view(self, record: EngineRecord | None, now: float) -> CertificateView | None:
        """As it stands at `now` (Unix seconds) for the engine that serves; None: no drill was ever made."""
        certificate = self.last
        if certificate is None:
            return None
        certified = [engine.model_version for engine in certificate.engines]
        return CertificateView(
            ts=certificate.ts,
            passed=certificate.passed,
            model_version=certified[0] if certified else "",
            stale=_stale(certificate, certified, record, now),
            text=told(certificate),
        )


async def drill_done(station: Station, params: DrillDone, actor: str) -> CertificateView:
    """Keep and show a certificate. Raises FeedError where it is none, or where nothing could have been drilled."""
    control = station.control
    if control is None:
        raise FeedError("refused", "this station only observes: no drill can have been made here")
    try:
        certificate = msgspec.convert(params.certificate, Certificate)
    except msgspec.ValidationError as error:
        raise FeedError("bad_params", f"drill_done: no certificate: {error}") from error
    now = time.time()
    station.recorder.put(
        ControlRecord(
            ts=now, actor=actor, action=DRILL, after={"passed": certificate.passed}, why=told(certificate),
            numbers=msgspec.to_builtins(certificate),
        )
    )  # fmt: skip
    station.tell("control", f"{actor}: {told(certificate)}")
    control.drills.last = certificate
    shown = control.drills.view(control.main_record(), now)
    assert shown is not None
    return shown


def told(certificate: Certificate) -> str:
    """One sentence."""
    tried = [way for way in certificate.ways if way.way != "back"]
    if certificate.passed:
        return f"drill passed: all {len(tried)} ways out that were tried work"
    failed = [f"{way.way} ({way.text})" for way in certificate.ways if not way.passed]
    return f"drill FAILED: {'; '.join(failed) or 'nothing was tried'}"


def _stale(certificate: Certificate, certified: list[str], record: EngineRecord | None, now: float) -> str | None:
    if record is not None and model_version(record) not in certified:
        return f"another version serves now: {short_version(model_version(record))}, vLLM {record.vllm}"
    days = (now - certificate.ts) / 86_400.0
    if now - certificate.ts > FRESH_SECONDS:
        return f"the drill is {days:.0f} days old"
    return None


def _recalled(recorder: Recorder) -> Certificate | None:
    try:
        with recorder.reading() as connection:
            numbers = last_certificate(connection)
        return None if numbers is None else msgspec.convert(numbers, Certificate)
    except (duckdb.Error, msgspec.MsgspecError) as error:
        log.warning("the last drill's certificate can't be read and is not shown: %s", error)
        return None
