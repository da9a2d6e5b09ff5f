"""A first request to this station, as it is pasted into a shell or into Python. Pure."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import urlsplit

from console.app.drawing.spans import clean
from console.app.picture import Picture

_LOOPBACK: Final = ("127.", "localhost", "::1")


def curl_lines(picture: Picture, width: int) -> list[str]:
    """A request that makes a bucket, broken so that it can still be pasted; empty where the address is not known."""
    url = picture.base_url
    if url is None:
        return []
    address = f"curl {clean(url)}/v1/chat/completions"
    header = "-H 'content-type: application/json'"
    key = "" if _is_loopback(url) else ' -H "authorization: Bearer $SPECDECK_API_KEY"'
    model = _model(picture)
    named = f'"model":{_in_quotes(json.dumps(model))},' if model else ""
    asked = '"messages":[{"role":"user","content":"Hello"}]'
    rest = '"max_tokens":64,"vllm_xargs":{"workload":"mine"}'
    one_line = f"{address} {header}{key} -d '{{{named}{asked},{rest}}}'"
    if len(one_line) <= width:
        return [one_line]
    heads = [f"{address} \\", f"  {header} \\", *([f" {key} \\"] if key else [])]
    return [*heads, f"  -d '{{{named}", f"    {asked},", f"    {rest}}}'"]


def python_lines(picture: Picture) -> list[str]:
    """The same with the `openai` package."""
    url = picture.base_url
    if url is None:
        return []
    key = '"none"' if _is_loopback(url) else 'os.environ["SPECDECK_API_KEY"]'
    imports = "from openai import OpenAI" if _is_loopback(url) else "import os; from openai import OpenAI"
    return [
        imports,
        f"client = OpenAI(base_url={json.dumps(clean(url) + '/v1')}, api_key={key})",
        f"client.chat.completions.create(model={json.dumps(_model(picture) or 'NAME')}, max_tokens=64,",
        '    messages=[{"role": "user", "content": "Hello"}], extra_headers={"x-workload": "mine"})',
    ]


def _model(picture: Picture) -> str | None:
    """The name that our own engine serves its target under; None where another may have been chosen."""
    target = next((engine.target for engine in picture.serving if engine.owned), "")
    return clean(target).partition("@")[0] or None


def _in_quotes(text: str) -> str:
    """As it stands between single quotes of a shell."""
    return text.replace("'", "'\\''")


def _is_loopback(url: str) -> bool:
    return (urlsplit(url).hostname or "").startswith(_LOOPBACK)
