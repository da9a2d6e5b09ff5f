"""Takes what engines send, or a trace holds, into the store: one path for both, in record time.

Messages are unpacked as they come; rows are checked, attributed and bucketed in batches, buffered, and appended to
DuckDB by `flush`. Bad facts are set apart and counted, never raised.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from engine.frames import Announcement, ArrivedSequence, FinishedSequence, Frame, PackedStep
from engine.records import (
    CUT_ACTION,
    LIMITS,
    TEXT_ACTION,
    TRACE_VERSION,
    ControlRecord,
    EngineRecord,
    FinishRecord,
    GapRecord,
    Record,
    SequenceRecord,
    StateRecord,
    StepRecord,
    TextRecord,
)
from store.attribution import Attribution, IngestCounts
from store.buckets import DEFAULT_EDGES, BucketBook, Edges, TagBook, model_version
from store.counts import Ints
from store.database import Store, StoreError
from store.holes import FrameHoles
from store.imports.observations import Observation
from store.pending_steps import PendingSteps
from store.record_tables import PROBES
from store.rollup import BEHIND_SECONDS
from store.rowbatch import RawRows, columns_of, step_facts, unpack_columns
from store.runs import EngineRun, Known, observed_engine, unknown_engine
from store.step_block import LATEST, LONGEST_MS, MOST_K, MOST_WHOLE, StepBlock
from store.stored import Stored
from store.windows import LiveWindows
from store.writer import Lost, Writer

log = logging.getLogger(__name__)

DIGEST_ROWS: Final = 65536
"""Rows are worked on in batches of about this many, …"""
DIGEST_SECONDS: Final = 0.2
"""… or what came in this time: live windows are at most that old while frames come."""


TEXT_LEFT: Final = "the trace holds prompts and answers: they stay in its file, no store takes them in"


class Ingest:
    """Feeds a store, and live windows where given. Not thread-safe: one thread calls it.

    Args:
        tags: workload tags that always have a place.
    """

    def __init__(
        self,
        store: Store,
        windows: LiveWindows | None = None,
        *,
        tags: Iterable[str] = (),
        edges: Edges = DEFAULT_EDGES,
    ) -> None:
        self.counts = IngestCounts()
        self._stored = Stored(store.cursor())
        self._writer = Writer(store)
        self._windows = windows
        self._edges = edges
        self._book = BucketBook(edges, self._stored.buckets())
        self._tags = TagBook(tags)
        for tag, ts in self._stored.recent_tags():
            self._tags.touch(tag, ts)
        self._next_run, self._next_sequence, self._next_step = self._stored.next_ids()
        self._runs: dict[tuple[str, str], EngineRun] = {}
        self._current: dict[str, EngineRun] = {}
        self._holes = FrameHoles(self.gap)
        self._rows = Attribution(self.counts, self._writer, self._book, self._tags, windows, self._new_sequence)
        self._later = PendingSteps()
        self._clock = 0.0
        self._digested = 0.0

    # What comes in

    def frame(self, frame: Frame, received: float) -> None:
        """Take one numbered message of an engine. `received`: Unix seconds, for frames that carry no time."""
        step = frame.step
        if not 0 <= frame.frame < 2**62 or (step is not None and not _sane(step)):
            self.broken_message(f"frame {frame.frame} of {frame.engine}: impossible numbers")
            return
        run = self._run(frame.engine, frame.boot, received)
        if not self._holes.arrived(run, frame, received):
            self.broken_message(f"frame {frame.frame} of {frame.engine} came again")
            return
        self._writer.progress(run.number, frame.frame, run.last_ts)
        for sequence in frame.sequences:
            self._arrived(run, sequence, frame.frame)
        if step is not None:
            self._step(run, frame.frame, step, unpack_columns(step.columns, step.count))
        for finish in frame.finishes:
            self._finished(run, finish)
        if self._rows.pending >= DIGEST_ROWS or received - self._digested >= DIGEST_SECONDS:
            self._digested = received
            self.digest()

    def announcement(self, announcement: Announcement, received: float) -> None:
        """Take an engine's word on who it is and what it serves: unknown sequences are introduced, and those it no
        longer serves are closed (their finish was lost)."""
        run = self._run(announcement.record.engine, announcement.boot, received)
        if run.record is None or run.placeholder:
            self._introduce(run, announcement.record)
        self._holes.announced(run, announcement, received)
        serving = set()
        for sequence in announcement.sequences:
            serving.add(sequence.seq)
            self._arrived(run, sequence, announcement.frame)
        for handle, known in run.handles.items():
            if handle not in serving and not known.finished and known.frame <= announcement.frame:
                run.leave(handle, max(self._clock, run.last_ts or 0.0))
        self._show_live(run)

    def record(self, record: Record) -> None:
        """Take one record of a trace."""
        match record:
            case StepRecord():
                self._step_record(record)
            case SequenceRecord():
                self._sequence_record(record)
            case FinishRecord():
                run = self._named_run(record.engine, record.ts)
                finish = FinishedSequence(run.handle_of(record.seq), record.ts, record.reason, record.output_tokens)
                self._finished(run, finish)
            case EngineRecord():
                self._engine_record(record)
            case GapRecord():
                self.gap(record)
            case ControlRecord():
                self.control(record)
            case StateRecord():
                self._writer.add("states", record.ts, _json(record.state))
            case TextRecord():
                pass  # text enters no store: `TEXT_LEFT` says so

    def steps(self, block: StepBlock, start: int, stop: int) -> int:
        """Take steps of a trace from `start` to `stop` (exclusive), or as many as can be before rows are worked on.

        The same as `record` with each of them, in a fraction of the time; where it came to.
        """
        if self._windows is not None:  # they are fed step by step
            self._step_record(block.record(start))
            return start + 1
        stop = block.reaching(start, stop, DIGEST_ROWS - self._pending)
        run = self._named_run(block.engine, block.times[start])
        run.last_ts = block.times[stop - 1]
        self._clock = max(self._clock, max(block.rounded_times[start:stop]))
        self._later.put(run, block, start, stop, self._next_step)
        self._next_step += stop - start
        if self._pending >= DIGEST_ROWS:
            self.digest()
        return stop

    def gap(self, gap: GapRecord) -> None:
        """Record a stretch of which nothing is known."""
        self.counts.gaps += 1
        self.counts.frames_lost += max(0, gap.frames_lost)
        self._writer.add("gaps", gap.engine, gap.ts, gap.frames_lost, gap.since, gap.reason)
        if self._windows is not None and gap.since is not None:
            self._windows.outage(gap.engine, gap.since, gap.ts)

    def observation(self, seen: Observation) -> None:
        """Take what an engine counted, as somebody else recorded it."""
        boot = f"{seen.engine}#observed {seen.model or 'unknown'}"
        run = self._run(seen.engine, boot, seen.since)
        if run.record is None:
            self._introduce(run, observed_engine(seen.engine, boot, seen.since, seen.model))
        self._writer.add(
            "observations", run.number, seen.since, seen.ts, seen.drafts, seen.draft_tokens, seen.accepted_tokens,
            seen.accepted_per_position, seen.generation_tokens, seen.prompt_tokens, seen.running, seen.waiting,
            seen.approximate, seen.source,
        )  # fmt: skip

    def control(self, control: ControlRecord) -> None:
        """Record an action of the operator or of the policy."""
        if control.action == TEXT_ACTION:
            self.note(TEXT_LEFT)
            return
        if control.action == CUT_ACTION and control.why:
            self.note(control.why)
        before, after, numbers = (
            None if value is None else _json(value) for value in (control.before, control.after, control.numbers)
        )
        self._writer.add(
            "controls", control.ts, control.actor, control.action, control.workload, before, after, control.policy,
            control.why, numbers,
        )  # fmt: skip

    def broken_message(self, reason: str) -> None:
        """Count a message that was no message."""
        self.counts.broken_messages += 1
        log.debug("telemetry set aside: %s", reason)

    @property
    def buffered_rows(self) -> int:
        """Rows that wait for the next flush."""
        return self._writer.buffered_rows + self._pending

    @property
    def _pending(self) -> int:
        """Rows that wait for the next `digest`."""
        return self._rows.pending + self._later.rows

    def note(self, text: str, since: float | None = None, until: float | None = None) -> None:
        """Keep a line for whoever reads the figures of a stretch, Unix seconds; with no end given, of any."""
        self._writer.add("notes", text, since, until)

    # What goes out

    def flush(self) -> None:
        """Append what is buffered to the store.

        Raises:
            StoreError: it can't be written; nothing is lost yet, call again.
        """
        self.digest()
        try:
            self._writer.flush(self._clock - BEHIND_SECONDS if self._clock else None)
        except StoreError:
            for lost in self._writer.drop_overflow():
                self._given_up(lost)
            raise

    def _given_up(self, lost: Lost) -> None:
        """Steps that the store will never hold. Live windows had them: for those it is no outage."""
        engine = next(run.engine for run in self._runs.values() if run.number == lost.run)
        self.counts.gaps += 1
        self.counts.frames_lost += lost.steps
        why = "the store could not be written for too long"
        self._writer.add("gaps", engine, lost.until, lost.steps, lost.since, why)

    def close(self) -> None:
        """Flush for good: what still waits for its sequence is stored as unattributed."""
        self._put_later_ones()
        self._rows.digest(math.inf)
        for run in self._runs.values():
            if run.record is None or run.placeholder:
                record = run.record or unknown_engine(run.engine, run.boot, run.last_ts or self._clock)
                self._introduce(run, record)
        self.flush()

    def digest(self) -> None:
        """Check, attribute and bucket the rows that have come since the last time."""
        self._put_later_ones()
        self._rows.digest(self._clock)
        for run in self._runs.values():
            for sequence in run.forget(self._clock):
                self._rows.resumes.forget(sequence)

    # Engines

    def _run(self, engine: str, boot: str, now: float) -> EngineRun:
        """The run of this boot. A new boot of an engine closes the sequences of the one before."""
        run = self._runs.get((engine, boot))
        if run is not None:
            return run
        before = self._current.get(engine)
        if before is not None:
            self.digest()
            self._close_run(before, now)
        run = self._stored.run(engine, boot, self._book)
        if run is None:
            run = EngineRun(self._next_run, engine, boot)
            self._next_run += 1
        self._holes.first_contact(run, restarted=before is not None, now=now)
        self._runs[engine, boot] = self._current[engine] = run
        return run

    def _close_run(self, run: EngineRun, ts: float) -> None:
        for handle in list(run.handles):
            run.leave(handle, ts)
        self._show_live(run)

    def _named_run(self, engine: str, ts: float) -> EngineRun:
        """The run that records of a trace belong to: the last one of that engine."""
        return self._current.get(engine) or self._run(engine, f"{engine}#{self._next_run}", ts)

    def _engine_record(self, record: EngineRecord) -> None:
        current = self._current.get(record.engine)
        if current is not None and current.record is not None and record.boot == current.boot:
            return
        if current is not None and current.record is None:
            self._introduce(current, record)  # its rows came before it in the trace
            return
        run = self._run(record.engine, record.boot or f"{record.engine}#{self._next_run}", record.ts)
        self._introduce(run, record)

    def _introduce(self, run: EngineRun, record: EngineRecord) -> None:
        # As JSON its time must be a number again; and its text stays behind.
        record = msgspec.structs.replace(record, ts=self._time(record.ts), v=min(record.v, TRACE_VERSION))
        run.record, run.placeholder = record, False
        run.classify(self._book)
        if run.stored:
            return
        run.stored = True
        self._writer.add(
            "engines", run.number, run.engine, run.boot, record.ts, record.vllm, record.target, record.drafter,
            record.method, model_version(record), record.max_k, record.batch_k, record.max_num_seqs,
            record.data_parallel_size, record.device, _json(record.configured), _json(record.resolved), _json(record),
            run.last_frame, run.last_ts,
        )  # fmt: skip

    # Sequences

    def _arrived(self, run: EngineRun, arrived: ArrivedSequence, frame: int) -> None:
        known = run.handles.get(arrived.seq)
        if known is not None and known.attributed:
            return
        if not -MOST_WHOLE <= arrived.seq <= MOST_WHOLE:
            self.broken_message(f"sequence {arrived.seq} of {run.engine}: no handle that a row could name")
            return
        degrees = arrived.temperature if math.isfinite(arrived.temperature) else None
        stored = self._stored.sequence(run, arrived.seq)
        if stored is not None:
            sequence, workload = stored
        else:
            ts = self._time(arrived.ts)
            sequence, workload = self._new_sequence(), self._tags.place(arrived.workload, ts)
            counted_as_came = arrived.workload == workload or not arrived.workload
            self._writer.add(
                "sequences", sequence, run.number, run.name_of(arrived.seq), arrived.request or None, ts,
                workload, None if counted_as_came else arrived.workload, degrees,
                min(max(arrived.prompt_tokens, 0), MOST_WHOLE), arrived.disable_speculation, arrived.lane,
                arrived.hint_error,
            )  # fmt: skip
        known = Known(sequence, workload, self._edges.temperature_label(degrees), frame)
        run.introduce(arrived.seq, known, self._book)

    def _finished(self, run: EngineRun, finish: FinishedSequence) -> None:
        known = run.handles.get(finish.seq)
        sequence = known.sequence if known is not None else None
        ts, output_tokens = self._time(finish.ts), min(max(finish.output_tokens, 0), MOST_WHOLE)
        self._writer.add("finishes", run.number, run.name_of(finish.seq), sequence, ts, finish.reason, output_tokens)
        run.leave(finish.seq, max(ts, self._clock))
        self._show_live(run)

    def _sequence_record(self, record: SequenceRecord) -> None:
        run = self._named_run(record.engine, record.ts)
        handle = run.handle_of(record.seq)
        degrees = math.nan if record.temperature is None else record.temperature
        known = run.handles.get(handle)
        if known is not None and known.finished:  # the name is used again, by another sequence
            self.digest()
            known.attributed = False
        self._arrived(
            run,
            ArrivedSequence(
                handle, record.request or "", record.ts, record.workload, degrees, record.prompt_tokens,
                record.disable_speculation, record.lane, record.hint_error,
            ),
            0,
        )  # fmt: skip

    def _new_sequence(self) -> int:
        number, self._next_sequence = self._next_sequence, self._next_sequence + 1
        return number

    def _show_live(self, run: EngineRun) -> None:
        if self._windows is not None and self._current.get(run.engine) is run:
            self._windows.live_sequences(run.engine, run.live)

    def _time(self, ts: float) -> float:
        """`ts` to the microsecond, or the present of the record where it lies on no time axis."""
        return round(ts, 6) if 0 < ts < LATEST else self._clock

    # Steps and rows

    def _step_record(self, record: StepRecord) -> None:
        step = PackedStep(
            record.step, record.ts, record.duration_ms, record.k_verify, record.k_draft, record.running,
            record.waiting, record.prefill_tokens, record.probe, record.policy, record.limit_draft,
            len(record.rows), b"",
        )  # fmt: skip
        if not _sane(step):
            self.broken_message(f"step {record.step} of {record.engine}: impossible numbers")
            return
        run = self._named_run(record.engine, record.ts)
        run.last_ts = record.ts
        handles = [run.handle_of(row.seq) for row in record.rows]
        self._step(run, record.frame, step, columns_of(record.rows, handles))
        if self._rows.pending >= DIGEST_ROWS:
            self.digest()

    def _put_later_ones(self) -> None:
        """Put the steps that came in blocks where those that came alone are."""
        for run, steps, raw in self._later.take():
            self._writer.add_all("steps", steps)
            self._rows.put(run, raw)

    def _step(self, run: EngineRun, frame: int, step: PackedStep, matrix: Ints) -> None:
        self._put_later_ones()
        number, self._next_step = self._next_step, self._next_step + 1
        ts = round(step.ts, 6)
        self._clock = max(self._clock, ts)
        facts, verified = step_facts(matrix, round(step.duration_ms, 3), step.prefill_tokens)
        self._writer.add(
            "steps", number, run.number, frame, step.step, ts, round(step.duration_ms, 3), step.k_verify, step.k_draft,
            step.running, step.waiting, step.prefill_tokens, None if step.probe is None else PROBES.index(step.probe),
            step.policy, LIMITS.index(step.limit_draft), facts.decode_rows, verified, facts.context_tokens,
        )  # fmt: skip
        if self._windows is not None:
            self._windows.step(run.engine, run.record, step, matrix)
        if step.count:
            each = np.repeat(np.array(facts, dtype=np.int64)[:, None], step.count, axis=1)
            raw = RawRows(matrix, np.full(step.count, number, dtype=np.int64), np.full(step.count, ts), each)
            self._rows.put(run, raw)


def _sane(step: PackedStep) -> bool:
    """Whether the numbers of a step can be stored and lie on the time axis."""
    whole = (step.step, step.running, step.waiting, step.prefill_tokens, step.policy, step.count)
    return (
        0 < step.ts < LATEST
        and 0 <= step.duration_ms < LONGEST_MS
        and all(0 <= value <= MOST_WHOLE for value in whole)
        and 0 <= step.k_verify <= MOST_K
        and 0 <= step.k_draft <= MOST_K
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
