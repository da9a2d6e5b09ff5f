"""What a place on a screen says while nobody has answered yet. Pure."""

from __future__ import annotations

from console.app.picture import Picture


def awaited(what: str, picture: Picture) -> str:
    """`what`: what will be there, as `The policy shows`."""
    return f"{what} here as soon as {'the trace is open' if picture.replaying else 'the station answers'}."
