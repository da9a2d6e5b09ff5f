"""What figures leave out: rows without drafts, probes, impossible rows, stretches of which nothing is known."""

from __future__ import annotations

from store.figure_sql import literals
from store.figure_sql.scope import Scope, picked, within


def left_out(scope: Scope) -> str:
    """Of a bucket's window: rows that drafted nothing, that end a prefill, that a probe touched, and draft steps soon
    after a long stretch at K = 0; and of all buckets what was set apart or lost in it."""
    inside = within(scope)
    return f"""{picked(scope)}
SELECT sum(if(decode_row AND NOT draft_step, n, 0)) AS undrafted,
  sum(if(decode_row, 0, n)) AS ending_a_prefill,
  sum(if(decode_row AND set_by = 'probe', n, 0)) AS probe_rows,
  sum(if(draft_step AND post_resume, n, 0)) AS post_resume,
  (SELECT count(*) FROM quarantine
    WHERE {inside}) AS quarantined,
  (SELECT count(*) FROM gaps
    WHERE {inside}) AS gaps,
  (SELECT coalesce(sum(frames_lost), 0) FROM gaps
    WHERE {inside}) AS frames_lost
FROM picked"""


def losses(end: float) -> str:
    """The same since the record began, of all buckets, as the status line adds it up."""
    until = literals.number(end)
    return f"""SELECT count(*) AS gaps,
  coalesce(sum(frames_lost), 0) AS frames_lost,
  (SELECT count(*) FROM quarantine WHERE ts <= {until})
  + (SELECT coalesce(sum(count), 0) FROM quarantine_1h
    WHERE cell <= {until} - 3600) AS quarantined
FROM gaps WHERE ts <= {until}"""


def quarantined(start: float, end: float) -> str:
    """Impossible rows by what is wrong with them."""
    return f"""SELECT reason, count(*) AS rows, min(ts) AS first, max(ts) AS last
FROM quarantine
WHERE ts >= {literals.number(start)} AND ts <= {literals.number(end)}
GROUP BY reason ORDER BY rows DESC"""


def gaps(start: float, end: float) -> str:
    """Stretches of which nothing is known, or of which frames are missing."""
    return f"""SELECT engine, since, ts, frames_lost, reason FROM gaps
WHERE ts >= {literals.number(start)} AND ts <= {literals.number(end)}
ORDER BY ts"""
