"""What was gathered for a bundle, as it is, and why the rest could not be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from store.database import StoreError
from store.redact.private import Private


class Gathered:
    def __init__(self, subject: str, private: Private) -> None:
        self.subject = subject
        self.private = private
        self.raw: dict[str, Any] = {}
        """Files (of records and logs) as paths, all else as values."""
        self.missing: dict[str, str] = {}
        self.names: list[Any] = []
        """No parts: what else names workload tags that texts may mention."""
        self.doubts: list[str] = []

    def take(self, name: str, have: Callable[[], Any]) -> None:
        """Have a part; where that fails, the reason is kept."""
        try:
            self.raw[name] = have()
        except click.ClickException as error:
            self.missing[name] = error.format_message()
        except (StoreError, OSError) as error:
            self.missing[name] = str(error)
        except Exception as error:  # a bundle is made when things are broken: of whatever is not
            self.missing[name] = f"{type(error).__name__}: {error}"
