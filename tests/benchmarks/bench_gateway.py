"""What the gateway adds: to each token on its way, and to the time from a request to its first token.

A stand-in engine streams chunks that carry their send time, 16 streams at once; the client notes when each arrives.
Arms alternate, there and back: the bare unix socket, the gateway with requests that it leaves as they are, the gateway
with requests whose body gets the tag of the header, and starlette + httpx as the usual way to build a proxy.
Run: `python tests/benchmarks/bench_gateway.py`. Prints a table and ratios; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

BODY = json.dumps(
    {
        "model": "bench",
        "messages": [{"role": "user", "content": "A question of the usual length, asked again. " * 10}] * 8,
        "stream": True,
        "temperature": 0.7,
        "max_tokens": 256,
    }
).encode()
HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n%%b\r\n" % len(BODY)
)
SHARES = (0.5, 0.99)
TAG = b"x-workload: bench\r\n"
PADDING = b'data: {"id":"chatcmpl-x","object":"chat.completion.chunk","choices":[{"delta":{"content":" word"}}],"t":'
CLOCK = time.clock_gettime_ns  # CLOCK_MONOTONIC is one clock for all processes of a machine


class Arm(NamedTuple):
    """One way to the engine; `pid` is the process in between, if any."""

    name: str
    address: str | tuple[str, int]
    pid: int | None
    header: bytes = b""


class Block(NamedTuple):
    """One measured block: transit of every chunk in µs, time to the first chunk in µs, CPU of the middle in µs."""

    transit: list[float]
    first: list[float]
    cpu_per_chunk: float | None


async def _serve_engine(path: str, chunks: int, interval: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await reader.readexactly(int(sizes[0].partition(b":")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(chunks):
            data = PADDING + b"%d}\n\n" % CLOCK(time.CLOCK_MONOTONIC)
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await asyncio.sleep(interval)
        writer.write(b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_unix_server(answer, path)
    await server.serve_forever()


def _serve_reference(path: str, port: int) -> None:
    """The usual way: starlette + httpx under uvicorn."""
    import httpx
    import uvicorn
    from starlette.applications import Starlette
    from starlette.background import BackgroundTask
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    client = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=path), base_url="http://engine", timeout=None)

    async def proxy(request: Request) -> StreamingResponse:
        upstream = client.build_request(
            request.method, request.url.path, headers=request.headers.raw, content=await request.body()
        )
        answer = await client.send(upstream, stream=True)
        headers = {k: v for k, v in answer.headers.items() if k != "transfer-encoding"}
        return StreamingResponse(
            answer.aiter_raw(), answer.status_code, headers, background=BackgroundTask(answer.aclose)
        )

    app = Starlette(routes=[Route("/{path:path}", proxy, methods=["GET", "POST"])])
    uvicorn.run(app, port=port, log_level="error", access_log=False)


async def _stream(arm: Arm, transit: list[float], first: list[float]) -> None:
    if isinstance(arm.address, str):
        reader, writer = await asyncio.open_unix_connection(arm.address)
    else:
        reader, writer = await asyncio.open_connection(*arm.address)
    begun = CLOCK(time.CLOCK_MONOTONIC)
    writer.write(HEAD % arm.header + BODY)
    seen = 0
    while line := await reader.readline():
        if line.startswith(b"data: "):
            now = CLOCK(time.CLOCK_MONOTONIC)
            transit.append((now - int(line[len(PADDING) : line.rindex(b"}")])) / 1e3)
            if not seen:
                first.append((now - begun) / 1e3)
            seen += 1
    writer.close()


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


async def _block(arm: Arm, streams: int, rounds: int) -> Block:
    transit: list[float] = []
    first: list[float] = []
    before = _cpu(arm.pid) if arm.pid else 0.0
    for _ in range(rounds):
        await asyncio.gather(*(_stream(arm, transit, first) for _ in range(streams)))
    cpu = 1e6 * (_cpu(arm.pid) - before) / len(transit) if arm.pid else None
    return Block(transit, first, cpu)


def _wait_for_port(port: int) -> None:
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)


def _wait_for_path(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _arms(options: argparse.Namespace) -> Iterator[list[Arm]]:
    with tempfile.TemporaryDirectory(prefix="sdbench") as folder, contextlib.ExitStack() as stack:
        engine, me = Path(folder) / "vllm", [sys.executable, __file__]
        gateway_port, reference_port = _free_port(), _free_port()

        def start(arguments: list[str]) -> int:
            process = subprocess.Popen(arguments, env={**os.environ, "PYTHONSAFEPATH": "1"})
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process.pid

        start([*me, "--role", "engine", str(engine), str(options.chunks), str(options.interval)])
        _wait_for_path(engine)
        gateway = [sys.executable, "-m", "console.gateway", "--upstream", str(engine)]
        gateway_pid = start([*gateway, "--control", f"{folder}/control", "--listen", f"127.0.0.1:{gateway_port}"])
        reference_pid = start([*me, "--role", "reference", str(engine), str(reference_port)])
        _wait_for_port(gateway_port)
        _wait_for_port(reference_port)
        yield [
            Arm("bare socket", str(engine), None),
            Arm("gateway, as it is", ("127.0.0.1", gateway_port), gateway_pid),
            Arm("gateway, tagged", ("127.0.0.1", gateway_port), gateway_pid, TAG),
            Arm("starlette+httpx", ("127.0.0.1", reference_port), reference_pid),
        ]


def _report(blocks: dict[str, list[Block]], streams: int) -> None:
    print(
        f"machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; {streams} streams"
    )
    print(
        f"{'':<18} {'a chunk':>15} {'first chunk':>17} {'CPU a chunk':>12}   (p50, p99 in µs; body {len(BODY)} bytes)"
    )
    for name, runs in blocks.items():
        cpu = [run.cpu_per_chunk for run in runs if run.cpu_per_chunk is not None]
        figures = " ".join(
            f"{_at(runs, what, 0.5):>8.0f} {_at(runs, what, 0.99):>8.0f}" for what in ("transit", "first")
        )
        print(f"{name:<18} {figures} {f'{statistics.mean(cpu):.0f}' if cpu else '-':>10}")
    for what, words in (("transit", "a chunk"), ("first", "the first chunk")):
        usual = [statistics.median(_added(blocks, "starlette+httpx", what, share)) for share in SHARES]
        for name in list(blocks)[1:]:
            added = [_added(blocks, name, what, share) for share in SHARES]
            figures = ", ".join(
                f"p{100 * share:.0f} {statistics.median(sweeps):.0f} µs ({min(sweeps):.0f} to {max(sweeps):.0f})"
                for share, sweeps in zip(SHARES, added, strict=True)
            )
            ratios = [statistics.median(ours) / theirs for ours, theirs in zip(added, usual, strict=True)]
            against = f"; {ratios[0]:.2f} and {ratios[1]:.2f} × starlette+httpx" if name != "starlette+httpx" else ""
            print(f"added to {words}, {name}: {figures}{against}")


def _added(blocks: dict[str, list[Block]], name: str, what: str, share: float) -> list[float]:
    """By sweep over the arms, µs that this one takes longer than the bare socket (neighbours in time see one load)."""
    pairs = zip(blocks[name], blocks["bare socket"], strict=True)
    return [_at([ours], what, share) - _at([bare], what, share) for ours, bare in pairs]


def _at(runs: list[Block], what: str, share: float) -> float:
    values = sorted(value for run in runs for value in getattr(run, what))
    return float(values[min(len(values) - 1, int(share * len(values)))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--chunks", type=int, default=20, help="per stream")
    parser.add_argument("--interval", type=float, default=0.02, help="seconds between two chunks of a stream")
    parser.add_argument("--rounds", type=int, default=5, help="of streams one after the other, in a block")
    parser.add_argument("--blocks", type=int, default=3, help="ABCDDCBA blocks")
    options = parser.parse_args()
    with _arms(options) as arms:
        blocks: dict[str, list[Block]] = {arm.name: [] for arm in arms}
        for arm in (arms + arms[::-1]) * options.blocks:
            blocks[arm.name].append(asyncio.run(_block(arm, options.streams, options.rounds)))
    _report(blocks, options.streams)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--role"] and sys.argv[2] == "engine":
        asyncio.run(_serve_engine(sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
    elif sys.argv[1:2] == ["--role"]:
        _serve_reference(sys.argv[3], int(sys.argv[4]))
    else:
        main()
