"""Rules for what vLLM writes of requests when it is told to log them, or when one breaks: prompts, answers, ids."""

from __future__ import annotations

from typing import Final

from store.redact.rule import MAIL, REQUEST, TEXT, rule
from store.redact.values import NESTED, QUOTED, QUOTED_LINES

_CONTENT: Final = r"(?:prompt|input|text|content|reasoning(?:_content)?|arguments|suffix|query|documents?|refusal)"
_WANTED: Final = r"(?:stop|bad_words|guided_\w{1,20}|json|regex|choice|grammar|structural_tag)"
"""What a request may say that its answer must hold or must not."""
_SOME: Final = rf"(?:{QUOTED}|(?![\[({{][\])}}])(?:{NESTED}|[\[{{][^\n]*))"
"""Neither nothing nor a number."""

REQUESTS: Final = (
    rule(rf"""(\b(?:prompt|output)s?:\s?)(?:(?:{QUOTED_LINES})[^\n]*|[bru]{{0,2}}['"].*)""", r"\1" + TEXT),
    rule(
        rf"""((?<!stop_)token_ids[\\'"]{{0,2}}\s{{0,2}}[=:]\s{{0,2}})(?!\[\])(?:{NESTED}|\[[^\]\n]*\]?)""", r"\1" + TEXT
    ),
    rule(rf"""([\\'"]{_CONTENT}[\\'"]{{1,2}}\s{{0,2}}:\s{{0,2}}){_SOME}""", r"\1" + TEXT),
    rule(rf"(\b{_CONTENT}\s?=\s?){_SOME}", r"\1" + TEXT),
    rule(rf"(\b{_WANTED}=){_SOME}", r"\1" + TEXT),
    rule(rf"(req(?:uest)?[_\ -]?ids[\\'\"]{{0,2}}\s{{0,3}}[=:]\s{{0,3}})(?![\[({{][\])}}]){NESTED}", r"\1" + REQUEST),
    rule(r"""(req(?:uest)?[_\ -]?ids?[\\'"]{0,2}\s{0,3}[=:]\s{0,3}[\\'"\[(]{0,3})[^\s'",;)\]}]+""", r"\1" + REQUEST),
    rule(r"""(?<![a-z0-9])(?:chat)?cmpl-[^\s'",;)\]}]+""", REQUEST),
    rule(r"(?<![\w.%+-])[\w.%+\ue000\ue002-]+@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}", MAIL),
)
