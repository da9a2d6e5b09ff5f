"""Rules for people and machines that nobody told us of, by where their names stand."""

from __future__ import annotations

import re
from typing import Final

from store.redact.rule import HOST, LOGIN, USER, rule
from store.redact.values import ABSENT

_NAME: Final = r"[a-z_][\w.-]*"
_EVERYBODYS: Final = re.compile(
    r"localhost|(?:[\w-]+\.)*(?:huggingface\.co|hf\.co|github\.com|pypi\.org|python\.org|pytorch\.org|vllm\.ai|nvidia\.com)"
    r"|0x[0-9a-f]+",
    re.I,
)
"""Hosts that everybody's messages link to, and what is none."""


def _host(found: re.Match[str]) -> str:
    name = found[2].rstrip(".")
    if _EVERYBODYS.fullmatch(name) or name.replace(".", "").isdigit():  # numbers are for the rules of addresses
        return found[0]
    return found[1] + HOST + found[2][len(name) :]


OTHERS: Final = (
    rule(
        rf"""((?<![a-z])(?:user(?:_?name)?|logname|sudo_user)[\\'"]{{0,2}}\s?[=:]\s?[\\'"]{{0,2}})(?!{ABSENT}){_NAME}""",
        r"\1" + USER,
    ),
    rule(r"(?<![\w.@-])[a-z_][\w.-]*@[a-z][\w.-]*(?=:[~/])", f"{USER}@{HOST}"),
    rule(
        rf"""((?<![a-z])(?:host|host_?name|(?:master|head|node|ray|server|dp|local)_(?:addr|address|host|name))
            (?:[\\'"]{{0,2}}\s?[=:]\s?[\\'"]{{0,2}}|[\\'"]{{1,2}},\s?b?[\\'"]{{1,2}}))(?!{ABSENT})({_NAME})""",
        _host,
    ),
    rule(r"(?<!\S)()([a-z0-9][\w.-]*)(?=:\d+:\d+\ \[\d+\]\ NCCL)", _host),
    rule(rf"((?:https?|wss?|tcp|udp|grpc|redis|s3|gs|nats|amqp|postgres\w*)://(?:{LOGIN}@)?)([a-z0-9][\w.-]*)", _host),
    rule(
        r"(?<![\w.-])([a-z0-9][\w-]*(?:\.[\w-]+)*(?<!threading)\.(?:internal|local|lan|corp|intranet|localdomain))(?![\w(])(?!\.\w)",
        HOST,
    ),
)
