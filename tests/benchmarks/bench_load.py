"""What the load generator takes of the cores that it shares with the engine: CPU for each request and each event of a
stream, and how late its requests leave.

A stand-in engine in a process of its own streams events at a steady pace. Arms alternate, there and back: the load
process as a rehearsal runs it, and the same requests by httpx in a process of their own. Run:
`python -m tests.benchmarks.bench_load`. Prints a table and a ratio; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import msgspec

from console.rehearsing.load.files import read_requests
from console.rehearsing.load.front import LoadSummary, send
from console.rehearsing.load.request import body
from store.rehearsal.records import DrawnRequest, Message

EVENT = (
    b'data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1790000000,'
    b'"model":"SmolLM2-135M-Instruct","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,'
    b'"finish_reason":null,"token_ids":null}]}\n\n'
)
USAGE = b'data: {"id":"chatcmpl-0","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":20}}\n\n'
DONE = b"data: [DONE]\n\n"


async def _serve(events: int, interval: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(events):
            writer.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
            await asyncio.sleep(interval)
        for data in (USAGE, DONE, b""):
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def _by_httpx(path: Path, url: str) -> LoadSummary:
    """The usual way, as little as it can be; the events are only looked at for their beginning."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        lags: list[float] = []

        async def one(request: DrawnRequest, due: float) -> None:
            lags.append(asyncio.get_running_loop().time() - due)
            content = body(request, "m", "", "salt")
            async with client.stream("POST", f"{url}/v1/chat/completions", content=content) as answer:
                async for line in answer.aiter_lines():
                    line.startswith("data:")

        requests, tasks = read_requests(path), []
        zero, cpu = asyncio.get_running_loop().time() + 0.1, time.process_time()
        for request in requests:
            await asyncio.sleep(max(0.0, zero + request.at - asyncio.get_running_loop().time()))
            tasks.append(asyncio.create_task(one(request, zero + request.at)))
        await asyncio.gather(*tasks)
        lags.sort()
        return LoadSummary(
            start=0.0, end=asyncio.get_running_loop().time() - zero, requests=len(requests), errors=0,
            lag_p99=lags[int(0.99 * len(lags))], lag_max=lags[-1], cpu_seconds=time.process_time() - cpu,
        )  # fmt: skip


def _measured(arm: str, path: Path, url: str) -> LoadSummary:
    if arm == "httpx":
        done = subprocess.run(
            [sys.executable, __file__, "--role", "httpx", str(path), url], capture_output=True, check=True
        )
        return msgspec.json.decode(done.stdout, type=LoadSummary)
    outcomes = path.with_name("outcomes.jsonl")
    arguments = {"base_url": url, "api_key": None, "model": "m", "tag_prefix": "bench/"}
    return asyncio.run(send(path, outcomes, on_progress=lambda progress: None, **arguments))  # type: ignore[arg-type]


def _requests(options: argparse.Namespace, path: Path) -> None:
    message = Message("user", "A question of the usual length, asked again. " * 20)
    path.write_bytes(
        b"".join(
            msgspec.json.encode(
                DrawnRequest(
                    id=str(number), at=number / options.rate, phase=0, workload="bench", messages=(message,),
                    max_tokens=20, temperature=0.0, seed=number,
                )
            ) + b"\n"
            for number in range(round(options.rate * options.seconds))
        )
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="requests/s")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a block")
    parser.add_argument("--events", type=int, default=20, help="of an answer")
    parser.add_argument("--interval", type=float, default=0.025, help="seconds between two events of a stream")
    parser.add_argument("--blocks", type=int, default=2, help="ABBA blocks")
    options = parser.parse_args()
    argv = [sys.executable, __file__, "--role", "engine", str(options.events), str(options.interval)]
    engine = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    runs: dict[str, list[LoadSummary]] = {"load": [], "httpx": []}
    try:
        assert engine.stdout is not None
        url = engine.stdout.readline().strip()
        with tempfile.TemporaryDirectory(prefix="sdbench") as folder:
            path = Path(folder) / "requests.jsonl"
            _requests(options, path)
            for arm in ("load", "httpx", "httpx", "load") * options.blocks:
                runs[arm].append(_measured(arm, path, url))
    finally:
        engine.kill()
        engine.wait()
    _report(runs, options)


def _report(runs: dict[str, list[LoadSummary]], options: argparse.Namespace) -> None:
    streams = options.rate * options.events * options.interval
    print(f"machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    print(f"{options.rate:g} requests/s of {options.events} events each, {streams:.0f} streams at once")
    print(f"{'':<8} {'CPU a request':>14} {'an event':>10} {'lag p99':>10} {'lag max':>10}")
    cpu = {}
    for arm, blocks in runs.items():
        cpu[arm] = statistics.median(block.cpu_seconds / block.requests for block in blocks)
        lags = [statistics.median(getattr(block, name) for block in blocks) for name in ("lag_p99", "lag_max")]
        print(
            f"{arm:<8} {1e6 * cpu[arm]:>11.0f} µs {1e6 * cpu[arm] / options.events:>7.0f} µs "
            f"{1e3 * lags[0]:>7.1f} ms {1e3 * lags[1]:>7.1f} ms"
        )
    print(f"the load process takes {cpu['load'] / cpu['httpx']:.2f} × the CPU of httpx")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--role"] and sys.argv[2] == "engine":
        asyncio.run(_serve(int(sys.argv[3]), float(sys.argv[4])))
    elif sys.argv[1:2] == ["--role"]:
        print(msgspec.json.encode(asyncio.run(_by_httpx(Path(sys.argv[3]), sys.argv[4]))).decode())
    else:
        main()
