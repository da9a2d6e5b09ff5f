"""What is explained on the Bucket screen: the moment that is read out, then all of the bucket. Pure."""

from __future__ import annotations

from console.app.bucket.facts import BucketFacts
from console.app.explaining.bucket import ON_BUCKET, bucket_sections
from console.app.explaining.detail import detail_sections, moment
from console.app.explaining.record import Record
from console.app.explaining.section import Section
from console.app.live.columns import RowFacts
from console.feed.messages import Snapshot


def bucket_screen_sections(facts: BucketFacts, snapshot: Snapshot) -> list[Section]:
    """A bucket that is no longer in the table has a series alone."""
    record, bucket, detail = Record.of(snapshot), facts.bucket, facts.detail
    chosen = [moment(facts, record)]
    if bucket is None:
        return [*chosen, *detail_sections(facts, record)]
    workload = next((view for view in snapshot.workloads if view.name == bucket.key.workload), None)
    alert = next((alert for alert in facts.alerts if alert.bucket == bucket.key and alert.state == "firing"), None)
    gain = detail.marginal if detail is not None else None
    why = facts.why("marginal") or ON_BUCKET
    figures = bucket_sections(RowFacts(bucket, snapshot.ts, alert, workload), snapshot, gain, why)
    by_k = detail_sections(facts, record)
    return [*chosen, *figures, *by_k] if facts.at is not None else [*figures, *by_k, *chosen]
