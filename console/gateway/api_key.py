"""The API key of the public port: reading it, and comparing without telling how much of a guess was right."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from console.gateway.listen import UsageError

VARIABLE = "SPECDECK_API_KEY"


def read_api_key(file: Path | None) -> bytes | None:
    """The key from `file`, else from the environment, else None. Never from an argument: `ps` would show it.

    Raises:
        UsageError: the file cannot be read, or the key is empty or not one line of printable ASCII.
    """
    if file is None:
        text, place = os.environ.get(VARIABLE), VARIABLE
        if text is None:
            return None
    else:
        place = str(file)
        try:
            text = file.read_text(encoding="ascii")
        except OSError as error:
            raise UsageError(f"API key file {file}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise UsageError(f"API key file {file}: the key must be printable ASCII") from None
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{place}: expected one line with the API key, printable ASCII without spaces")
    return key.encode("ascii")


def authorized(authorization: bytes | None, key: bytes) -> bool:
    """Whether an `Authorization` header carries `Bearer <key>`. Constant time in the key."""
    scheme, _, credentials = (authorization or b"").partition(b" ")
    return hmac.compare_digest(credentials.strip(), key) and scheme.lower() == b"bearer"
