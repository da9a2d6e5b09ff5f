"""Prompts and answers while a recording with text goes on: fetched every second, and written with it at its end.

Until then they lie in a file without a name: it is gone with this process, however that ends.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import click
import msgspec

from console.cli.outcomes import BadInput, say
from console.feed.texts import LEASE_SECONDS, Texts, TextsWanted
from engine.records import TextRecord

_ASK_SECONDS: Final = 5.0
_FINISH_SECONDS: Final = 2 * LEASE_SECONDS
_NO_ROOM: Final = "for which there was no room on the disk"


class _Place(NamedTuple):
    ts: float
    start: int
    """Where it begins in the file."""
    size: int
    """Bytes; 0: there was no room for it."""


class RecordedText:
    """Of one recording into `target`. Raises BadInput where nothing can be written beside it."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._name = uuid.uuid4().hex
        try:
            self._file = tempfile.TemporaryFile(dir=target.parent)  # noqa: SIM115  # for as long as the recording
        except OSError as error:
            raise BadInput(f"{target.parent}: can't be written: {error.strerror or error}") from error
        self._places: list[_Place] = []
        """Of the text of number 1 and so on: an interrupt finds each here or not at all."""
        self._begun = 0.0
        self._since = 0.0
        self._heard = 0.0
        self._left_out: dict[float, dict[str, int]] = {}
        """By the moment since which the gateway keeps text."""
        self._silent = False

    def begin(self) -> None:
        """From now on text is kept. Raises what says why it can't be."""
        self._fetch()
        self._begun = self._since

    def look(self) -> None:
        """Fetch what there is. Where that fails it is said, once, and tried again the next time."""
        try:
            self._fetch()
        except click.ClickException as error:
            if not self._silent:
                say(f"no text is recorded at the moment: {error.format_message()}; it is tried again")
            self._silent = True

    def finish(self) -> None:
        """Fetch the rest, answers that are on their way as far as they came, and let no more be kept."""
        deadline = time.monotonic() + _FINISH_SECONDS
        while True:
            try:
                while self._fetch(end=True):
                    pass
            except click.ClickException as error:
                if time.monotonic() > deadline:
                    say(f"the last texts are missing: {error.format_message()}")
                    return
                time.sleep(0.5)
            else:
                return

    def beside(self, target: Path) -> Path:
        """Where the counts can be written that the text is to go among: hidden, with the same ending."""
        stem, dot, ending = target.name.partition(".")
        return target.with_name(f".{stem}.counts-{os.getpid()}{dot}{ending}")

    def write(self, counts: Path) -> None:
        """Write the trace `counts` and the text among it to the target.

        Raises:
            BadInput: it can't be written; names the place and why.
        """
        from store.trace import TraceError, TraceNotes, file_records
        from store.trace.convert import written
        from store.trace.forms import ENDINGS
        from store.trace.texts import text_mark, with_text
        from store.trace.whole_file import whole_file

        left_out: dict[str, int] = {}
        for found in self._left_out.values():
            for reason, count in found.items():
                left_out[reason] = left_out.get(reason, 0) + count
        mark = text_mark(self._begun, time.time(), len(self._kept), left_out)
        try:
            with whole_file(self._target, ENDINGS) as partial:
                written(partial, with_text(file_records(counts), self._texts(), mark), TraceNotes())
        except TraceError as error:
            raise BadInput(str(error)) from error
        say(_told(len(self._kept), left_out))

    def _fetch(self, *, end: bool = False) -> bool:
        """Everything that there is by now; whether there was anything."""
        from console.cli.station import ask

        found = False
        while True:
            wanted = TextsWanted(recording=self._name, file=str(self._target), after=len(self._places), end=end)
            answer = ask("record_text", Texts, wanted, seconds=_ASK_SECONDS)
            self._met(answer)
            for text in answer.texts:
                self._keep(text)
            found |= bool(answer.texts)
            if not answer.more:
                return found

    def _met(self, answer: Texts) -> None:
        if self._since and answer.since > self._since:
            times = (datetime.fromtimestamp(ts).astimezone().strftime("%H:%M:%S") for ts in (self._heard, answer.since))
            say("text of requests that came in between {} and {} is missing: nobody kept it".format(*times))
        self._since, self._heard, self._silent = answer.since, time.time(), False
        self._left_out[answer.since] = answer.left_out | (
            {_NO_ROOM: kept} if (kept := self._left_out.get(answer.since, {}).get(_NO_ROOM)) else {}
        )

    def _keep(self, text: TextRecord) -> None:
        line = msgspec.json.encode(text)
        start = self._places[-1].start + self._places[-1].size if self._places else 0
        try:
            self._file.seek(start)
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            counted = self._left_out[self._since]
            if _NO_ROOM not in counted:
                say(f"text is left out from now on: {self._target.parent}: {error.strerror or error}")
            counted[_NO_ROOM] = counted.get(_NO_ROOM, 0) + 1
            self._places.append(_Place(text.ts, start, 0))
        else:
            self._places.append(_Place(text.ts, start, len(line)))

    @property
    def _kept(self) -> list[_Place]:
        """In the order of their time."""
        return sorted(place for place in self._places if place.size)

    def _texts(self) -> Iterator[TextRecord]:
        for place in self._kept:
            self._file.seek(place.start)
            yield msgspec.json.decode(self._file.read(place.size), type=TextRecord)


def _told(requests: int, left_out: dict[str, int]) -> str:
    from store.trace.texts import left_out_words, of_so_many

    some = left_out_words(left_out)
    return f"it holds the text of {of_so_many(requests)}" + (f"; {some}" if some else "")
