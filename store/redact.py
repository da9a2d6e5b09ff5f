"""Takes out of records and of text what is nobody else's business: secrets, people, machines, workload tags.

One thing has the same stand-in everywhere in what one `Redactor` has redacted. What stands in for something is first a
character of Unicode's private use area, so that no later rule takes it for text; the readable form comes last. In doubt
too much is taken out.
"""

from __future__ import annotations

import ipaddress
import json
import os
import pwd
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, get_args
from urllib.parse import quote

import msgspec

from engine.records import LIMITS, FinishRecord, Record, Row, SequenceRecord, StateRecord, StepRecord
from store.buckets import OTHER, UNATTRIBUTED, UNTAGGED

_SHOWN: Final = ("<secret>", "<credentials>", "<request>", "<text>", "<e-mail>", "<address>", "~", "<user>", "<host>")
_SECRET, _LOGIN, _REQUEST, _TEXT, _MAIL, _ADDRESS, _HOME, _USER, _HOST = map(chr, range(0xE000, 0xE009))
_READABLE: Final = {0xE000 + number: text for number, text in enumerate(_SHOWN)}
_TAKEN: Final = re.compile("[\ue000-\ue008]")

_SECRET_NAME: Final = r"""(?:(?:api|access|secret|private|signing)[_-]?key|secret|passw(?:or)?d|passphrase|pwd
    |credential)s?(?:[_-]?(?:key|id|value|hash|string|text|data|\d+))*"""
_ENDS_SECRET: Final = re.compile(rf"(?:{_SECRET_NAME}|token|authorization|cookie|(?<![a-z])key)$", re.I | re.X)
_SEPARATOR: Final = r"""[\\'"\]]{0,4}\s{0,3}(?::=|=>|[=:])\s{0,3}"""
_QUOTED: Final = r"""[bru]{0,2}"(?:[^"\\\n]|\\.)*" | [bru]{0,2}'(?:[^'\\\n]|\\.)*' | \\+"[^"\n]*" | \\+'[^'\n]*'"""
_ABSENT: Final = r"""(?:none|null|true|false|unset)(?:[\s,;)\]}'"]|$)"""
_BOUND: Final = r"""(?:ms|us|s|%|k|M)?(?:[\s,;)\]}'"/]|$)"""
_PATH: Final = r"""(?:~|\.{1,2})?/[^\s'",;)\]}]+"""

_KNOWN_KEYS: Final = r"""sk-[\w-]{4,} | hf_(?-i:(?=[a-z]*[0-9A-Z]))[a-z0-9]{6,} | hf_[a-z0-9]{16,} | gh[pousr]_\w{16,}
    | github_pat_\w{16,} | glpat-[\w-]{16,} | xox[a-z]-[\w-]{10,} | (?-i:AKIA|ASIA)[0-9A-Z]{12,} | AIza[\w-]{20,}
    | nvapi-[\w-]{10,} | gsk_\w{16,} | eyJ[\w-]{8,256}\.[\w-]{4,}(?:\.[\w-]*)?"""
_BLOB: Final = r"(?=[a-z+/_=-]{0,200}\d)[a-z0-9+/_=-]{16,} | (?-i:(?=\w*[A-Z])(?=\w*[a-z])[A-Za-z0-9+/=]{24,})"


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str]


def _rule(pattern: str, put: str | Callable[[re.Match[str]], str]) -> Rule:
    return Rule(re.compile(pattern, re.I | re.X), put)


def _last_part(found: re.Match[str]) -> str:
    return found[1] + (found[2].rstrip("/").rpartition("/")[2] or found[2])


def _address(found: re.Match[str]) -> str:
    """An address that says nothing (loopback, "all interfaces") stays, as does what only looks like one."""
    text = found[0]
    for start, end in ((0, 0), (0, 1), (1, 0), (1, 1)):
        inner = text[start : len(text) - end]
        if text[:start] + text[len(text) - end :] in ("", ":", "::") and _tells(inner):
            return text[:start] + _ADDRESS + text[len(text) - end :]
    return text


def _tells(text: str) -> bool:
    """Whether `text` is an address, and one that tells a machine from others."""
    bare = text.partition("%")[0]
    if "." in bare and ":" not in bare:  # Python refuses the leading zeros that others print
        bare = ".".join(part.lstrip("0") or "0" for part in bare.split("."))
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None) or address
    return not (inner.is_loopback or inner.is_unspecified)


_SECRETS: Final = (
    _rule(r"-----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\Z)", _SECRET),
    _rule(r"""(?<=://)(?:[^\s/?#'"<>]*|[^\s/?#'"<>@:]*:(?!\d{1,5}(?:/|$))[^\s'"<>]{0,256})@""", _LOGIN + "@"),
    _rule(
        rf"""((?:authorization|x-api-key|cookie)[\\'"\]]{{0,2}}\s{{0,3}}[:=,]\s{{0,3}})(?:{_QUOTED}|[^\r\n'"]+)""",
        r"\1" + _SECRET,
    ),
    _rule(r"""\b(bearer\s+)[^\s'",;]+""", r"\1" + _SECRET),
    _rule(r"\b(basic\s+)(?=[a-z+/]*[0-9=])[a-z0-9+/=]{8,}", r"\1" + _SECRET),
    _rule(rf"({_SECRET_NAME}{_SEPARATOR})(?!{_ABSENT})(?:{_QUOTED}|[\[{{][^\n]*|\S+)", r"\1" + _SECRET),
    # Tokens are also what a model reads and writes: counts of them stay.
    _rule(rf"(tokens{_SEPARATOR})(?!{_ABSENT}|[\[({{]*-?\d+(?:\.\d+)?{_BOUND})(?:{_QUOTED}|\S+)", r"\1" + _SECRET),
    _rule(rf"(token{_SEPARATOR})(?!{_ABSENT}|(?:\d{{1,5}}|\d+\.\d+){_BOUND})(?:{_QUOTED}|\S+)", r"\1" + _SECRET),
    _rule(
        r"""(--[\w-]{0,40}(?:key|token|secret|passw(?:or)?d|pwd|credentials?)[\\'"]{0,2}(?:\s*,\s*|\s+)[\\'"]{0,2})
            (?!-)[^\s'",\])]+""",
        r"\1" + _SECRET,
    ),
    _rule(
        rf"""((?:key|token|secret|password|credential)s?[\\'"\]]{{0,2}}[\s:=]{{1,4}}(?:(?:is|was)\s+)?[\\'"(<\[]{{0,2}})
            (?:{_BLOB})""",
        r"\1" + _SECRET,
    ),
    _rule(rf"(?<![a-z0-9])(?:{_KNOWN_KEYS})", _SECRET),
)

_CONTENT: Final = (
    # What vLLM writes of requests when it is told to log them, or when one breaks.
    _rule(r"""(\b(?:prompt|output)s?:\s?)[bru]{0,2}['"].*""", r"\1" + _TEXT),
    _rule(r"""((?:prompt|output)_token_ids[\\'"]{0,2}\s{0,2}[=:]\s{0,2})\[[^\]\n]*\]?""", r"\1" + _TEXT),
    _rule(rf"""([\\'"]content[\\'"]{{1,2}}\s{{0,2}}:\s{{0,2}})(?:{_QUOTED})""", r"\1" + _TEXT),
    _rule(rf"(\b(?:prompt|text)\s?=\s?)(?:{_QUOTED})", r"\1" + _TEXT),
    _rule(r"""(req(?:uest)?[_\ -]?ids?[\\'"]{0,2}\s{0,3}[=:]\s{0,3}[\\'"\[(]{0,3})[^\s'",;)\]}]+""", r"\1" + _REQUEST),
    _rule(r"""(?<![a-z0-9])(?:chat)?cmpl-[^\s'",;)\]}]+""", _REQUEST),
    _rule(r"(?<![\w.%+-])[\w.%+\ue000\ue002-]+@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}", _MAIL),
)

_MODEL_PATH: Final = _rule(
    rf"""((?:model|tokenizer|drafter)\w{{0,20}}[\\'"]{{0,2}}(?:\s{{0,3}}[=:,]\s{{0,3}}|\s{{1,4}})[\\'"]{{0,2}})({_PATH})""",
    _last_part,
)
_ADDRESSES: Final = (
    _rule(
        r"(?<!\w)(?=[0-9a-f]{0,45}:[0-9a-f]{0,45}:)[0-9a-f:]{2,45}(?:(?:\.\d{1,3}){3})?(?:%[\w.-]+)?(?!\w)", _address
    ),
    _rule(r"(?<!\d)(?:\d{1,3}\.){3}\d{1,3}(?!\d)", _address),
    _rule(r"(?<!\w)ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]+)?", _ADDRESS),
)
_OTHERS_HOME: Final = _rule(r"""(/(?:home|Users)/)[^/\s'",:;)\]}]+""", r"\1" + _USER)

_KEPT_TAGS: Final = frozenset((UNTAGGED, OTHER, UNATTRIBUTED))
_KEPT_ACTORS: Final = frozenset(
    ("operator", "policy", "station", "engine", "gateway", "judge", "adaptive", "fallback", "rehearsal", "drill")
)
_ACTOR_FIELDS: Final = frozenset(("actor", "acknowledged"))
_MODEL_FIELDS: Final = frozenset(("target", "drafter", "model", "model_version", "tokenizer"))
_WORDS_OF_OURS: Final = frozenset((
    *LIMITS, "schedule", "free", "fixed", "speculative", "vanilla", "live",
    *(str(kind.__struct_config__.tag) for kind in get_args(Record)),
))  # fmt: skip
"""Values of closed lists, which are left alone even where a tag has the same name."""
_VOCABULARY: Final = frozenset((
    "type", "mode", "limit", "batch_k", "lane", "action", "method", "device", "vllm", "runner", "graph_mode", "boot",
    "kind", "severity", "state", "speedup_state", "context", "temperature", "role", "cause",
))  # fmt: skip
"""Fields with short words of ours or of vLLM's: neither a name nor a tag is looked for in them."""


class Private(NamedTuple):
    """What a machine and its operator are known by. `models`: paths of models that may be mentioned anywhere."""

    secrets: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    @classmethod
    def here(cls, secrets: Iterable[str] = (), hosts: Iterable[str] = (), models: Iterable[str] = ()) -> Self:
        """This machine and whoever runs this process, and what is given beside."""
        homes, users = {os.path.expanduser("~")}, {os.environ.get("USER", ""), os.environ.get("LOGNAME", "")}
        try:
            account = pwd.getpwuid(os.getuid())
        except KeyError:  # in a container the user may have a number only
            pass
        else:
            homes.add(account.pw_dir)
            users |= {account.pw_name, account.pw_gecos.partition(",")[0].strip()}
        homes |= {os.path.realpath(home) for home in homes}
        own = {socket.gethostname(), os.uname().nodename}
        named = {name for name in (*own, *hosts, *(name.partition(".")[0] for name in own)) if not _is_address(name)}
        return cls(
            tuple(secrets), tuple(homes), tuple(users - {""}), tuple(named - {"", "localhost"}), tuple(models)
        )  # fmt: skip


def secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Values of an environment whose names say that they are secret."""
    for name, value in environ.items():
        if value and (name == "SPECDECK_API_KEY" or (len(value) >= 8 and _ENDS_SECRET.search(name))):
            yield value


def secret_arguments(argv: Sequence[str]) -> Iterator[str]:
    """Values of options of a command line whose names say that they are secret."""
    for name, value in _options(argv):
        if value and _ENDS_SECRET.search(name):
            yield value


NOBODY: Final = Private()


class Redactor:
    """Everything of one bundle goes through one of these: `learn` first what it is about, then redact."""

    def __init__(self, private: Private = NOBODY, *, keep_tags: bool = False) -> None:
        self._private = private
        self._keep_tags = keep_tags
        self._tags: dict[str, str] = {}
        self._engines: dict[str, str] = {}
        self._sequences: dict[tuple[str, str], str] = {}
        self._models: set[str] = set()
        self._literal = _literals(private.secrets)
        self._home = _homes(private.homes)
        self._people = set(private.users)
        self._words: dict[tuple[bool, bool, int, int], Rule | None] = {}
        for path in private.models:
            self._meet_model(path)

    def learn(self, value: Any) -> None:
        """Meet the tags, actors and model paths that a record or anything like JSON names: text may mention them."""
        if isinstance(value, SequenceRecord):
            self.tag(value.workload)
        elif isinstance(value, msgspec.Struct) and not isinstance(value, StepRecord):
            self._learn(msgspec.to_builtins(value), "")
        elif isinstance(value, dict | list):
            self._learn(value, "")

    def record(self, record: Record) -> Record | None:
        """The record without what is private; None where nobody can say what is in it (a `state`, when tags go)."""
        match record:
            case StepRecord():
                return self._step(record)
            case SequenceRecord():
                return self._sequence(record)
            case FinishRecord():
                return self._finish(record)
            case StateRecord() if not self._keep_tags:
                return None
        return msgspec.convert(self.value(msgspec.to_builtins(record)), type(record))

    def value(self, value: Any, field: str = "") -> Any:
        """The same of anything that JSON can hold. What a string may hold is told by the field that it stands in."""
        if isinstance(value, str):
            return self._string(value, field)
        if isinstance(value, dict):
            return {self._key(name, field): self.value(item, name) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return self._strings(value, field) if _all_text(value) else [self.value(item, field) for item in value]
        return value

    def text(self, text: str, *, names: bool = True, tags: bool = True) -> str:
        """Free text. `names` and `tags` off: words that only could be the user, the host or a tag are left."""
        text = _TAKEN.sub("\ufffd", text)
        for rule in self._rules(names, tags):
            text = rule.pattern.sub(rule.put, text)
        return text.translate(_READABLE)

    def tag(self, workload: str | None) -> str | None:
        """`tag-1`, `tag-2`, … as they are met. The names of ours for what has no tag stay."""
        if not workload or workload in _KEPT_TAGS:
            return workload
        if self._keep_tags:
            return workload if self._literal is None else self._literal.pattern.sub(_SHOWN[0], workload)
        return self._tags.setdefault(workload, f"tag-{len(self._tags) + 1}")

    def model(self, identity: str) -> str:
        """A model's identity, or a version made of several: of a path only the last part is left."""
        return self.text(" | ".join(_model_name(part) for part in identity.split(" | ")), tags=False)

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
            hint_error=None if sequence.hint_error is None else self.text(sequence.hint_error),
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
                if field == "workloads":
                    self.tag(name)
                self._learn(item, name)
        elif isinstance(value, list | tuple):
            for item in value:
                self._learn(item, field)
        elif isinstance(value, str) and field == "workload":
            self.tag(value)
        elif isinstance(value, str) and field in _ACTOR_FIELDS and value and value not in _KEPT_ACTORS:
            self._people.add(value)
        elif isinstance(value, str) and field in _MODEL_FIELDS:
            for part in value.split(" | "):
                self._meet_model(part)

    def _meet_model(self, identity: str) -> None:
        path = _head(identity).rstrip("/")
        if _is_path(path):
            self._models.add(path)

    def _key(self, name: str, field: str) -> str:
        if field == "workloads":
            return self.tag(name) or name
        return self.text(name, names=False, tags=False)

    def _string(self, value: str, field: str) -> str:
        if not value:
            return value
        if _ENDS_SECRET.search(field):
            return _SHOWN[0]
        if field == "workload":
            return self.tag(value) or value
        if field in _MODEL_FIELDS:
            return self.model(value)
        if field == "engine":
            return self.engine(value)
        if field in _ACTOR_FIELDS:
            return value if value in _KEPT_ACTORS else "operator"
        if field == "request":
            return _SHOWN[2]
        if field in _VOCABULARY:
            return value if value in _WORDS_OF_OURS else self.text(value, names=False, tags=False)
        return self.text(value)

    def _strings(self, values: Sequence[str], field: str) -> list[str]:
        """A list of strings may be a command line, where an option says what the next one is."""
        done, option = [], ""
        for value in values:
            if value.startswith("-"):
                done.append(self.text(value))
            elif _ENDS_SECRET.search(option):
                done.append(_SHOWN[0])
            else:
                done.append(self._string(value, option.lstrip("-") if option else field))
            option = value if value.startswith("--") and "=" not in value else ""
        return done

    def _rules(self, names: bool, tags: bool) -> Iterator[Rule]:
        if self._literal is not None:
            yield self._literal
        yield from _SECRETS
        yield from _CONTENT
        if self._models:
            yield self._model_rule()
        yield _MODEL_PATH
        if self._home is not None:
            yield self._home
        yield _OTHERS_HOME
        yield from _ADDRESSES
        words = self._word_rule(names, tags)
        if words is not None:
            yield words

    def _model_rule(self) -> Rule:
        paths = sorted(self._models, key=len, reverse=True)
        pattern = "|".join(map(re.escape, paths))
        return Rule(
            re.compile(rf"(?<![\w.-])(?:{pattern})(?![\w-])(?!\.\w)"), lambda found: found[0].rpartition("/")[2]
        )

    def _word_rule(self, names: bool, tags: bool) -> Rule | None:
        """Users, hosts and tags in one rule, longest first: any of them may be part of another."""
        key = (names, tags, len(self._tags), len(self._people))
        if key not in self._words:
            self._words[key] = self._made_word_rule(names, tags)
        return self._words[key]

    def _made_word_rule(self, names: bool, tags: bool) -> Rule | None:
        stand_in: dict[str, str] = {}
        patterns: dict[str, str] = {}
        for users_or_hosts, mark in ((self._private.hosts, _HOST), (self._people, _USER)) if names else ():
            for name in users_or_hosts:
                stand_in[name.casefold()] = mark
                patterns[name] = _word(name, r"(?:\.[a-z0-9-]+)*" if mark == _HOST else "")
        for tag, number in self._tags.items() if tags else ():
            seen = _TAKEN.sub("\ufffd", tag)
            stand_in.setdefault(seen.casefold(), number)
            stand_in[seen] = number
            patterns[seen] = _word(seen)
        if not patterns:
            return None
        longest_first = sorted(patterns, key=len, reverse=True)
        words = [patterns[name] for name in longest_first if name[0].isalnum()]
        choices = [patterns[name] for name in longest_first if not name[0].isalnum()]
        if words:  # one look back for all of them: where no word begins, none of what may be hundreds is tried
            choices.append(rf"(?<![^\W_])(?:{'|'.join(words)})")

        def put(found: re.Match[str]) -> str:
            return stand_in.get(found[0]) or stand_in.get(found[0].casefold()) or _HOST

        return Rule(re.compile("|".join(choices), re.I), put)


def _word(text: str, tail: str = "") -> str:
    """`text` where no letter or digit follows that would make it longer."""
    return re.escape(text) + tail + (r"(?![^\W_])" if text[-1].isalnum() else "")


def _literals(secrets: Iterable[str]) -> Rule | None:
    """The secrets themselves, also as JSON, Python and URLs write them."""
    spelled = {
        form
        for secret in secrets
        if secret.strip()
        for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe=""))
    }
    if not spelled:
        return None
    return Rule(re.compile("|".join(re.escape(form) for form in sorted(spelled, key=len, reverse=True))), _SECRET)


def _homes(homes: Iterable[str]) -> Rule | None:
    paths = sorted({home.rstrip("/") for home in homes} - {""}, key=len, reverse=True)
    if not paths:
        return None
    return Rule(re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, paths))})(?![\w-])(?!\.\w)"), _HOME)


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each `--name value` and `--name=value` of a command line."""
    for word, following in zip(argv, [*argv[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            yield name, value if equals else "" if following.startswith("-") else following


def _head(identity: str) -> str:
    """What of `NAME@FINGERPRINT:…` may be a path. A path may hold an @ itself, what follows a name no slash."""
    head, _, rest = identity.partition("@")
    return identity if "/" in rest and head.startswith(("/", "~", ".")) else head


def _model_name(identity: str) -> str:
    head = _head(identity)
    if not _is_path(head):
        return identity
    return (head.rstrip("/").rpartition("/")[2] or head) + identity[len(head) :]


def _is_path(text: str) -> bool:
    """Whether a model is named by its folder and not as `org/name`."""
    return text.startswith(("/", "./", "../", "~")) or text.count("/") > 1


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _all_text(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)
