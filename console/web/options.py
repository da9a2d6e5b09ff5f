"""What `specdeck web` is started with, and the token that keeps others out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TOKEN_VARIABLE: Final = "SPECDECK_WEB_TOKEN"
SHORTEST_TOKEN: Final = 16
"""Characters. What is shorter can be tried out."""


class TokenError(ValueError):
    """A token that can't be used: says where it is from and what to do."""


def read_token(file: Path | None, environment: str | None) -> str | None:
    """The token from `file`, else from the environment, None where neither gives one. Never from an argument: `ps`
    would show it to those whom it shall keep out.

    Raises:
        TokenError: the file can't be read, or what it holds is no token.
    """
    if file is not None:
        try:
            return _checked(file.read_text(encoding="ascii"), str(file))
        except OSError as error:
            raise TokenError(f"{file}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise TokenError(f"{file}: the token must be printable ASCII") from None
    return _checked(environment, TOKEN_VARIABLE) if environment is not None else None


def _checked(text: str, place: str) -> str:
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError(f"{place}: expected one line with the token, printable ASCII without spaces")
    if len(token) < SHORTEST_TOKEN:
        raise TokenError(
            f"{place}: a token of {len(token)} characters can be guessed; {SHORTEST_TOKEN} at least, such as "
            f"`openssl rand -hex 16` makes"
        )
    return token
