"""Rules for secrets: by the name before them, by where they stand, by what they look like.

In doubt too much is taken out.
"""

from __future__ import annotations

from typing import Final

from store.redact.rule import LOGIN, SECRET, rule
from store.redact.secret_names import SECRET_NAME
from store.redact.values import ABSENT, BOUND, NESTED, QUOTED, SEPARATOR, VALUE

_KNOWN_KEYS: Final = r"""sk-[\w-]{4,} | hf_(?-i:(?=[a-z]*[0-9A-Z]))[a-z0-9]{6,} | hf_[a-z0-9]{16,} | gh[pousr]_\w{16,}
    | github_pat_\w{16,} | glpat-[\w-]{16,} | xox[a-z]-[\w-]{10,} | (?-i:AKIA|ASIA)[0-9A-Z]{12,} | AIza[\w-]{20,}
    | ya29\.[\w-]{16,} | nvapi-[\w-]{10,} | gsk_\w{16,} | xai-[\w-]{16,} | r8_\w{16,} | npm_\w{20,} | pypi-[\w-]{16,}
    | dapi[0-9a-f]{32} | tgp_v1_[\w-]{16,} | [sr]k_(?:live|test)_\w{8,} | eyJ[\w-]{8,256}\.[\w-]{4,}(?:\.[\w-]*)?"""
_BLOB: Final = r"(?=[a-z+/_=-]{0,200}\d)[a-z0-9+/_=-]{16,} | (?-i:(?=\w*[A-Z])(?=\w*[a-z])[A-Za-z0-9+/=]{24,})"
_HEADER: Final = r"(?:authorization|x-api-key|cookie)"
_NAMED: Final = rf"(?:{SECRET_NAME}|token|{_HEADER})"
_PRIVATE_KEY: Final = r"[A-Z\ ]{0,20}PRIVATE\ KEY(?:\ BLOCK)?-----"
_NO_PASSWORD: Final = r"(?:not|no|missing|required|invalid|wrong|incorrect|expired|empty|unset|set|too|needed|absent)\b"

PRIVATE_KEYS: Final = (
    rule(rf"-----BEGIN\ {_PRIVATE_KEY}(?s:.*?)(?:-----END\ {_PRIVATE_KEY}|\Z)", SECRET),
    # A log that was cut may begin within one.
    rule(rf"\A(?:[a-z0-9+/=]{{1,200}}+\s{{1,4}})++-----END\ {_PRIVATE_KEY}", SECRET),
    rule(r"\bssh-(?:rsa|dss|ed25519)\s+AAAA[\w+/=]+(?:[ \t]+[\w.-]+@[\w.-]+)?", SECRET),
)
IN_URLS: Final = (
    rule(r"""(?<=://)(?:[^\s/?#'"<>]*|[^\s/?#'"<>@:]*:(?!\d{1,5}(?:/|$))[^\s'"<>]{0,256})@""", LOGIN + "@"),
    rule(r"""(hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/)[^\s'"<>]+""", r"\1" + SECRET),
    rule(r"""([?&](?:[\w-]{0,40}signature|sig|s?key|code|auth|jwt|sas)=)[^&\s'"<>\\]+""", r"\1" + SECRET),
)
IN_HEADERS: Final = (
    rule(
        rf"""({_HEADER}[\\'"\]]{{0,8}}\s{{0,3}}(?:[:=,]|%3a)\s{{0,3}}+(?!['"]{{0,2}}value\b))
            (?:{QUOTED}|(?:=\s?(?:{QUOTED})|[^\r\n'"])+)""",
        r"\1" + SECRET,
    ),
    rule(r"""\b(bearer(?:\s|%20|\\[tnr]|\+)+)[^\s'",;]+""", r"\1" + SECRET),
    rule(r"\b(basic\s+)(?=[a-z+/]*[0-9=])[a-z0-9+/=]{8,}", r"\1" + SECRET),
    rule(rf"(\bauth\s?=\s?)(?:{NESTED})", r"\1" + SECRET),
)
BEHIND_A_NAME: Final = (
    # YAML: all lines that are further in than the name
    rule(
        rf"(?m:^)([ \t]*)((?:-[ \t]+)?['\"]?[\w.-]{{0,60}}?(?:{SECRET_NAME}|token)['\"]?[ \t]*:[ \t]*)"
        r"[|>][+\d-]{0,2}[ \t]*(?:\n(?:\1[ \t]+[^\n]*|[ \t]*(?=\n)))++",
        r"\1\2" + SECRET,
    ),
    # {"name": "API_KEY", "value": "…"}
    rule(
        rf"({_NAMED}[\\'\"]{{1,2}}\s{{0,3}},\s{{0,20}}[\\'\"]{{1,2}}value[\\'\"]{{1,2}}\s{{0,3}}:\s{{0,3}}){VALUE}",
        r"\1" + SECRET,
    ),
    rule(rf"({SECRET_NAME}{SEPARATOR})(?!{ABSENT}){VALUE}", r"\1" + SECRET),
    # Tokens are also what a model reads and writes: counts of them stay.
    rule(rf"(tokens{SEPARATOR})(?!{ABSENT}|[\[({{]*-?\d+(?:\.\d+)?{BOUND}|[\[({{][\])}}]){VALUE}", r"\1" + SECRET),
    rule(rf"(token{SEPARATOR})(?!{ABSENT}|(?:\d{{1,5}}|\d+\.\d+){BOUND}){VALUE}", r"\1" + SECRET),
    rule(
        rf"""((?:passw(?:or)?d|passphrase|secret|api[_\ -]?key)\s{{1,2}})(?:{QUOTED})""",
        r"\1" + SECRET,
    ),
    rule(r"(\blogin\s+)\S+(\s+password\s+)\S+", rf"\1{SECRET}\2{SECRET}"),  # .netrc
    rule(rf"""((?:passw(?:or)?d|passphrase)\s(?:is|was):?\s)(?!{_NO_PASSWORD})\S+""", r"\1" + SECRET),
    rule(
        rf"""((?:key|token|secret|password|credential)s?[\\'"\]]{{0,2}}[\s:=]{{1,4}}(?:(?:is|was)\s+)?[\\'"(<\[]{{0,2}})
            (?:{_BLOB})""",
        r"\1" + SECRET,
    ),
)
_OPTION: Final = r"""--[\w-]{0,40}(?:key|token|secret|passw(?:or)?d|pwd|credentials?)"""
_WORD: Final = rf"""(?![\\'"]{{0,2}}-)(?:{QUOTED}|[\\'"]{{0,2}}[^\s'",\])]+)"""
_BETWEEN: Final = r"""[\\'"]{0,2}(?:\s*,\s*|\s*\\\n\s*|\s+)"""
_AND_MORE: Final = r"""[\\'"]{0,2}(?:\s*,\s*|[ \t]*\\\n[ \t]*|[ \t]+)"""
BEHIND_AN_OPTION: Final = (
    # vLLM takes any number of keys behind this one.
    rule(rf"(--api-keys?{_BETWEEN}){_WORD}(?:{_AND_MORE}{_WORD}){{0,64}}", r"\1" + SECRET),
    rule(rf"({_OPTION}{_BETWEEN}){_WORD}", r"\1" + SECRET),
    rule(r"((?:\s-u|--user|--proxy-user)(?:\s+|=)[\\'\"]{0,2}[^\s:'\"]{1,80}:)[^\s'\"]+", r"\1" + SECRET),
)
BY_THEIR_LOOK: Final = (rule(rf"(?<![a-z0-9])(?:{_KNOWN_KEYS})", SECRET),)

CREDENTIALS: Final = (
    *PRIVATE_KEYS, *IN_URLS, *IN_HEADERS, *BEHIND_A_NAME, *BEHIND_AN_OPTION, *BY_THEIR_LOOK,
)  # fmt: skip
