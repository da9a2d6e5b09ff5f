"""A stand-in for vLLM's API server on a unix socket or a port, for tests that are about the proxy or about the traffic.

It is a fake on purpose: such tests need an engine that sends exactly these bytes, waits for the test between two of
them, or dies in the middle. The real engine is driven by the end-to-end tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import h11


class Call:
    """One request as the engine saw it, and the raw connection to answer on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.method = ""
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)

    async def read_request(self) -> bool:
        """Read the whole request; False when the client left first."""
        http = h11.Connection(h11.SERVER)
        body = []
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await self._reader.read(65536))
            elif isinstance(event, h11.Request):
                self.method, self.target, self.headers = event.method.decode(), event.target, list(event.headers)
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self.body = b"".join(body)
                return True
            else:
                return False

    async def send(self, raw: bytes) -> None:
        """Send exactly these bytes."""
        self._writer.write(raw)
        await self._writer.drain()

    async def respond(self, body: bytes, *, status: int = 200, headers: tuple[bytes, ...] = ()) -> None:
        lines = [b"HTTP/1.1 %d Fine" % status, b"content-length: %d" % len(body), *headers]
        await self.send(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    async def start_events(self) -> None:
        await self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end_chunks(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def client_left(self) -> None:
        """Return when the other side has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(65536):
                pass

    def die(self) -> None:
        """Drop the connection, as a killed process does."""
        self._writer.transport.abort()


Handler = Callable[[Call], Awaitable[None]]


@contextlib.asynccontextmanager
async def fake_engine(path: Path, handler: Handler) -> AsyncIterator[None]:
    """Serve `handler` on the unix socket `path`; the connection closes when it returns."""
    async with _served(handler, lambda serve: asyncio.start_unix_server(serve, path, limit=2**20)):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def fake_server(handler: Handler) -> AsyncIterator[str]:
    """The same on a loopback port of its own; gives its URL."""
    async with _served(handler, lambda serve: asyncio.start_server(serve, "127.0.0.1", limit=2**20)) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def _served(
    handler: Handler, listen: Callable[[Serve], Awaitable[asyncio.Server]]
) -> AsyncIterator[asyncio.Server]:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        call = Call(reader, writer)
        try:
            with contextlib.suppress(ConnectionError, h11.RemoteProtocolError):
                if await call.read_request():
                    await handler(call)
        finally:
            tasks.discard(task)
            writer.close()

    server = await listen(serve)
    try:
        yield server
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def fake_engine_process(path: Path, *, delay: float) -> Iterator[subprocess.Popen[bytes]]:
    """`chat_engine` as a process of its own, which can be killed like one; its socket is there when this returns."""
    path.unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, __file__, str(path), str(delay)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def chat_engine(*, tokens: int = 8, delay: float = 0.0, model: str = "fake-model") -> Handler:
    """A handler that answers `/v1/models` and chat completions, streaming and not, `delay` seconds per token."""

    async def handle(call: Call) -> None:
        if call.target == b"/v1/models":
            await call.respond(json.dumps({"object": "list", "data": [{"id": model}]}).encode(), headers=_JSON)
            return
        request = json.loads(call.body)
        if not request.get("stream"):
            await asyncio.sleep(delay * tokens)
            usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
            answer = {"choices": [{"message": {"role": "assistant", "content": "word " * tokens}}], "usage": usage}
            await call.respond(json.dumps(answer).encode(), headers=_JSON)
            return
        await call.start_events()
        for index in range(tokens):
            await asyncio.sleep(delay)
            await call.chunk(b'data: {"choices":[{"delta":{"content":"w%d "}}]}\n\n' % index)
        await call.chunk(b"data: [DONE]\n\n")
        await call.end_chunks()

    return handle


_JSON = (b"content-type: application/json",)


async def _serve(path: Path, delay: float) -> None:
    async with fake_engine(path, chat_engine(delay=delay)):
        print("listening", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), float(sys.argv[2])))
