"""The traffic's command line: progress on stderr, the result on stdout."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec

from console.traffic.plan import PROFILES, Profile
from console.traffic.progress import Progress, Result
from console.traffic.runner import ServerUnreachable, run

_EXAMPLE = "example: python -m console.traffic --base-url http://127.0.0.1:8000/v1 --profile demo --seed 7"
_NARRATION_SECONDS = 5.0


def main(arguments: list[str] | None = None) -> int:
    """Send traffic. Returns 0 ok, 1 when no request was answered, 2 bad usage, 3 no server, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        _check(options)
        api_key = _api_key(options.api_key_file)
    except ValueError as error:
        return _say(str(error), 2)
    profile: Profile = PROFILES[options.profile]
    if options.duration is not None:
        profile = profile.lasting(options.duration)
    try:
        result = asyncio.run(_run(profile, options, api_key))
    except ServerUnreachable as error:
        return _say(f"no server: {error}. Start one (`specdeck serve`) or give another --base-url", 3)
    print(msgspec.json.encode(result).decode() if options.json else _table(result))
    if result.interrupted:
        return 130
    return 0 if result.done else 1


async def _run(profile: Profile, options: argparse.Namespace, api_key: str | None) -> Result:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return await run(
        profile,
        options.base_url,
        on_progress=_narrator(options.progress),
        seed=options.seed,
        scale=options.scale,
        model=options.model,
        api_key=api_key,
        stop=stop,
        patience_seconds=options.patience,
        tag_prefix=options.tag_prefix,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m console.traffic", description=__doc__, epilog=_EXAMPLE)
    parser.add_argument(
        "--base-url", required=True, metavar="URL", help="OpenAI-compatible, e.g. http://127.0.0.1:8000/v1"
    )
    parser.add_argument("--profile", default="demo", choices=sorted(PROFILES), help="what to send (default: demo)")
    parser.add_argument("--seed", type=int, default=7, help="same seed, same requests at the same moments")
    parser.add_argument("--duration", type=float, metavar="S", help="stretch the profile to S seconds in all")
    parser.add_argument(
        "--scale", type=float, metavar="X", help="multiply the rates (default: measure the server first)"
    )
    parser.add_argument("--model", help="model name (default: the first that the server lists)")
    parser.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="file with the API key (else SPECDECK_API_KEY)"
    )
    parser.add_argument("--patience", type=float, default=60.0, metavar="S", help="how long to wait for a server")
    parser.add_argument("--tag-prefix", default="", metavar="TEXT", help="put before the workloads' names in the tags")
    parser.add_argument("--progress", type=Path, metavar="FILE", help="keep how it stands in FILE, as JSON")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    return parser


def _check(options: argparse.Namespace) -> None:
    try:
        url = httpx.URL(options.base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"--base-url {options.base_url!r}: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"--base-url {options.base_url!r}: expected a URL such as http://127.0.0.1:8000/v1")
    if options.duration is not None and not options.duration > 0:
        raise ValueError(f"--duration {options.duration}: must be more than 0 seconds")
    if options.scale is not None and not 0 < options.scale <= 1000:
        raise ValueError(f"--scale {options.scale}: must be more than 0, at most 1000")


def _api_key(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("SPECDECK_API_KEY")
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--api-key-file {file}: {error}") from error


def _narrator(kept: Path | None) -> Callable[[Progress], None]:
    """Says something when the phase or the trouble changes, and every few seconds. `kept`: a file that always has the
    last progress."""
    last = ("", False, 0.0)

    def narrate(progress: Progress) -> None:
        nonlocal last
        if kept is not None:
            draft = kept.with_name(f".{kept.name}")
            draft.write_bytes(msgspec.json.encode(progress))
            draft.replace(kept)
        phase, trouble, said = last
        if (progress.phase, bool(progress.note)) == (phase, trouble) and time.monotonic() - said < _NARRATION_SECONDS:
            return
        last = (progress.phase, bool(progress.note), time.monotonic())
        print(f"traffic: {_sentence(progress)}", file=sys.stderr, flush=True)

    return narrate


def _sentence(progress: Progress) -> str:
    parts = [f"{progress.phase}, {progress.seconds_left:.0f} s left", f"{progress.sent} sent"]
    parts += [f"{progress.done} done", f"{progress.in_flight} in flight"]
    parts += [f"{count} {kind}" for kind, count in sorted(progress.errors.items())]
    parts += [f"{count} not sent ({why})" for why, count in sorted(progress.shed.items())]
    return ", ".join(parts) + (f"; {progress.note}" if progress.note else "")


def _table(result: Result) -> str:
    lines = [f"{'workload':<10} {'done':>6} {'errors':>7} {'tokens':>8} {'p50 s':>7} {'p95 s':>7}"]
    for name, row in result.workloads.items():
        times = [f"{value:7.2f}" if value is not None else "      –" for value in (row.latency_p50, row.latency_p95)]
        lines.append(f"{name:<10} {row.done:>6} {row.errors:>7} {row.output_tokens:>8} {times[0]} {times[1]}")
    return "\n".join(lines)


def _say(text: str, code: int) -> int:
    print(f"traffic: {text}", file=sys.stderr)
    return code
