"""Redacts records and whatever JSON can hold. One thing has one stand-in in all that one `Redactor` redacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from engine.records import (
    TEXT_ACTION,
    ControlRecord,
    FinishRecord,
    Record,
    Row,
    SequenceRecord,
    StateRecord,
    StepRecord,
    TextRecord,
)
from store.redact.fields import ACTORS, KEYED_BY_TAG, MODELS, OUR_ACTORS, OUR_WORDS, VOCABULARY
from store.redact.models import ModelPaths, short_model
from store.redact.names import Names
from store.redact.private import NOBODY, Private
from store.redact.rule import REQUEST, SECRET, TEXT, readable
from store.redact.secret_names import is_secret
from store.redact.text import TextRedactor


class Redactor:
    """Everything of one bundle goes through one of these: `learn` first what it is about, then redact."""

    def __init__(self, private: Private = NOBODY, *, keep_tags: bool = False) -> None:
        self._keep_tags = keep_tags
        self._names = Names(private.users, private.hosts)
        self._engines: dict[str, str] = {}
        self._sequences: dict[tuple[str, str], str] = {}
        self._models = ModelPaths(private.models)
        self._text = TextRedactor(private, self._names, self._models)
        self.text = self._text.redact

    def learn(self, value: Any) -> None:
        """Meet the tags, actors and model paths that a record or anything like JSON names: text may mention them."""
        if isinstance(value, SequenceRecord):
            self.tag(value.workload)
        elif isinstance(value, msgspec.Struct) and not isinstance(value, StepRecord | TextRecord):
            self._learn(msgspec.to_builtins(value), "")
        elif isinstance(value, dict | list):
            self._learn(value, "")

    def record(self, record: Record) -> Record | None:
        """The record without what is private; None for prompts and answers, and where nobody can say what is in it (a
        `state`, when tags go)."""
        match record:
            case StepRecord():
                return self._step(record)
            case SequenceRecord():
                return self._sequence(record)
            case FinishRecord():
                return self._finish(record)
            case StateRecord() if not self._keep_tags:
                return None
            case TextRecord():
                return None
            case ControlRecord() if record.action == TEXT_ACTION:
                return None
        return msgspec.convert(self.value(msgspec.to_builtins(record)), type(record))

    def value(self, value: Any, field: str = "") -> Any:
        """The same of anything that JSON can hold. What a string may hold is told by the field that it stands in."""
        if isinstance(value, str):
            return self._string(value, field)
        if isinstance(value, dict):
            return {self._key(name, field): self.value(item, name) for name, item in _fields(value)}
        if isinstance(value, list | tuple):
            return self._strings(value, field) if _all_text(value) else [self.value(item, field) for item in value]
        return value

    def tag(self, workload: str | None) -> str | None:
        """Its number, unless tags are kept. No tag is none."""
        if not workload:
            return workload
        return self._text.without_known_secrets(workload) if self._keep_tags else self._names.tag(workload)

    def model(self, identity: str) -> str:
        """A model's identity, or a version made of several: of a path only the last part is left."""
        return self.text(" | ".join(map(short_model, identity.split(" | "))), tags=False)

    def engine(self, name: str) -> str:
        if name not in self._engines:
            self._engines[name] = self.text(name, tags=False)
        return self._engines[name]

    def _step(self, step: StepRecord) -> StepRecord:
        engine, name = step.engine, self._name
        rows = [
            Row(
                name(engine, row.seq), row.k_asked, row.limit, row.proposed, row.drafted, row.invalid, row.accepted,
                row.emitted, row.context, row.cause,
            )
            for row in step.rows
        ]  # fmt: skip
        return msgspec.structs.replace(step, engine=self.engine(engine), rows=rows)

    def _sequence(self, sequence: SequenceRecord) -> SequenceRecord:
        return msgspec.structs.replace(
            sequence,
            engine=self.engine(sequence.engine),
            seq=self._name(sequence.engine, sequence.seq),
            workload=self.tag(sequence.workload),
            hint_error=None if sequence.hint_error is None else readable(TEXT),  # a client may have written anything
            request=None,
        )

    def _finish(self, finish: FinishRecord) -> FinishRecord:
        return msgspec.structs.replace(
            finish,
            engine=self.engine(finish.engine),
            seq=self._name(finish.engine, finish.seq),
            reason=self.text(finish.reason, names=False, tags=False),
        )

    def _name(self, engine: str, sequence: str) -> str:
        return self._sequences.setdefault((engine, sequence), str(len(self._sequences) + 1))

    def _learn(self, value: Any, field: str) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                if field in KEYED_BY_TAG:
                    self.tag(name)
                self._learn(item, name)
        elif isinstance(value, list | tuple):
            for item in value:
                self._learn(item, field)
        elif isinstance(value, str) and field == "workload":
            self.tag(value)
        elif isinstance(value, str) and field in ACTORS and value and value not in OUR_ACTORS:
            self._names.people.add(value)
        elif isinstance(value, str) and field in MODELS:
            self._models.meet(value.split(" | "))

    def _key(self, name: str, field: str) -> str:
        if field in KEYED_BY_TAG:
            return self.tag(name) or name
        return self.text(name, names=field == "engines", tags=False)

    def _string(self, value: str, field: str) -> str:
        if not value:
            return value
        if is_secret(field):
            return readable(SECRET)
        if field == "workload":
            return self.tag(value) or value
        if field in MODELS:
            return self.model(value)
        if field == "engine":
            return self.engine(value)
        if field in ACTORS:
            return value if value in OUR_ACTORS else "operator"
        if field == "request":
            return readable(REQUEST)
        if field in VOCABULARY:
            return value if value in OUR_WORDS else self.text(value, names=False, tags=False)
        return self.text(value)

    def _strings(self, values: Sequence[str], field: str) -> list[str]:
        """A list of strings may be a command line, where an option says what comes next; or a name and its value."""
        if len(values) == 2 and is_secret(values[0]) and not values[0].startswith("-"):
            return [self._string(values[0], field), readable(SECRET)]
        done, option = [], ""
        for value in values:
            if value.startswith("-"):
                done.append(self.text(value))
                option = value if value.startswith("--") and "=" not in value else ""
            elif is_secret(option):  # there may be several
                done.append(readable(SECRET))
            else:
                done.append(self._string(value, option.lstrip("-") or field))
                option = ""
        return done


def _fields(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """Of `{"name": "API_KEY", "value": …}` the value is secret, too."""
    name = value.get("name", value.get("key"))
    if isinstance(name, str) and is_secret(name) and isinstance(value.get("value"), str):
        value = value | {"value": readable(SECRET) if value["value"] else ""}
    return list(value.items())


def _all_text(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)
