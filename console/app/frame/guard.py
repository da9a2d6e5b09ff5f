"""Keeps an action from being done when something it needs is missing, and says what."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual.dom import DOMNode

from console.app.actions import ACTIONS, unmet

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

Method = TypeVar("Method", bound=Callable[..., Any])


def guarded(method: Method) -> Method:
    """Wrap an `action_<id>` method: with a need unmet, the operator is told why and nothing else happens."""
    action = ACTIONS[method.__name__.removeprefix("action_")]

    @wraps(method)
    def run(self: DOMNode, *args: Any) -> Any:
        app = cast("SpecdeckApp", self.app)
        why = unmet(action, app.picture)
        if why is None:
            return method(self, *args)
        app.tell(why, severity="warning")
        return None

    return cast(Method, run)
