"""An HTTP/1.1 client that shows the bytes: what a proxy test has to look at, and libraries tidy away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class RawClient:
    """One connection. `read_head` gives status and header lines as they came; bodies are read by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def post(
        self, body: bytes = b"{}", *headers: bytes, target: bytes = b"/v1/chat/completions", chunks: int = 0
    ) -> None:
        """A POST with these header lines beside its own; with `chunks` the body is sent in pieces of that size."""
        lines = [b"POST %b HTTP/1.1" % target, b"host: me", *headers]
        if chunks:
            lines.append(b"transfer-encoding: chunked")
            pieces = [body[at : at + chunks] for at in range(0, len(body), chunks)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        else:
            lines.append(b"content-length: %d" % len(body))
        await self.send(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    async def read_head(self) -> tuple[int, list[bytes]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).rstrip(b"\r\n").split(b"\r\n")
        return int(lines[0].split()[1]), lines[1:]

    async def read_body(self, headers: list[bytes]) -> bytes:
        """The body of an answer with these header lines, by its length or its chunks."""
        size = next((line for line in headers if line.lower().startswith(b"content-length:")), None)
        if size is None:
            return b"".join(await self.read_chunks())
        return await self.reader.readexactly(int(size.partition(b":")[2]))

    async def read_chunk(self) -> bytes:
        """The payload of one chunk, with its framing checked; empty at the end of the body."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        chunk = await self.reader.readexactly(size)
        assert await self.reader.readexactly(2) == b"\r\n"
        return chunk

    async def read_chunks(self) -> list[bytes]:
        chunks = []
        while chunk := await self.read_chunk():
            chunks.append(chunk)
        return chunks


@contextlib.asynccontextmanager
async def raw_client(port: int) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
