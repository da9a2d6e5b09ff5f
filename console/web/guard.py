"""Stands before everything that the server answers: refuses who may not, and says how a browser has to handle the rest.

The WebSocket counts most, since it alone reads the screen and types: it is refused before the handshake is answered.
"""

from __future__ import annotations

from typing import Final

import aiohttp_jinja2
from aiohttp import web
from aiohttp.typedefs import Handler

from console.web.access import Access

FORBIDDEN: Final = 403

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # xterm.js writes its sizes into style sheets and attributes of its own
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Server": "specdeck",
}

NEEDS_TOKEN: Final = (
    "A token is needed",
    "The terminal where `specdeck web` runs shows the address with it. Open that address, or give the token here.",
)
WRONG_TOKEN: Final = (
    "This is not the token",
    "It may be of an earlier start: each makes a new one, unless one was given. The terminal where `specdeck web` runs "
    "shows the right address.",
)
UNKNOWN_HOST: Final = (
    "This server has no such name",
    "Open it by its address, such as http://127.0.0.1, or start it with `specdeck web --allow-host NAME`.",
)
OTHER_ORIGIN: Final = ("Another site asked for the console", "Only a page of this server may open one.")


def protect(app: web.Application, access: Access) -> None:
    """Put the guard before textual-serve's `app`."""
    page, websocket = app.router["index"], app.router["websocket"]

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not access.knows_host(request.host):
            return _note(request, UNKNOWN_HOST)
        asked = request.match_info.route.resource
        if asked is websocket and not access.same_origin(request.headers.get("Origin"), request.host):
            return _note(request, OTHER_ORIGIN)
        token = request.query.get("token")
        if token is not None and asked is page:
            return _admitted(request, access) if access.right_token(token) else _note(request, WRONG_TOKEN, ask=True)
        if not access.has_proof(request.cookies.get(access.cookie)):
            return _note(request, NEEDS_TOKEN, ask=True)
        return await handler(request)

    app.middlewares.append(guard)
    app.on_response_prepare.append(_add_headers)


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _admitted(request: web.Request, access: Access) -> web.Response:
    """Hand out the cookie and go on to the page without the token in its address.

    By a page that goes on by itself, not a redirect: after a link on another site, a browser would not send the
    cookie along one.
    """
    said = ("The token is right", "The console opens by itself.")
    response = _note(request, said, status=200, go_on=True)
    response.set_cookie(
        access.cookie, access.proof, path="/", httponly=True, samesite="Strict", secure=request.scheme == "https"
    )
    return response


def _note(
    request: web.Request, said: tuple[str, str], *, status: int = FORBIDDEN, ask: bool = False, go_on: bool = False
) -> web.Response:
    title, text = said
    context = {"title": title, "text": text, "ask": ask, "go_on": go_on}
    return aiohttp_jinja2.render_template("note.html", request, context, status=status)
