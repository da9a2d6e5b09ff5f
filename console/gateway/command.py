"""The gateway's command line. Starting it is the station's business; by hand it is for trying things out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from console.gateway.api_key import read_api_key
from console.gateway.listen import PortError, UsageError, bind, bound_address, parse_address, require_key_if_public

_EXAMPLE = "example: python -m console.gateway --listen 127.0.0.1:8000 --upstream /run/x/vllm --control /run/x/gateway"
_SOCKET_PATH_LIMIT = 107


def main(arguments: list[str] | None = None) -> int:
    """Run the gateway. Returns 0 after an orderly stop, 2 for bad usage, 3 when the port cannot be had."""
    options = _parser().parse_args(arguments)
    try:
        address = parse_address(options.listen)
        api_key = read_api_key(options.api_key_file)
        require_key_if_public(address, api_key)
        control = _socket_path(options.control, "--control")
        upstream = _socket_path(options.upstream, "--upstream")
        vanilla = _vanilla_path(options.vanilla_upstream, upstream)
        listener = bind(address)
    except UsageError as error:
        return _say(error, 2)
    except PortError as error:
        return _say(error, 3)
    # The port first: only its holder may take over the control socket of a gateway that died.
    from console.gateway.proxy import Engines, Proxy
    from console.gateway.server import run

    beside = f", vanilla lane → {vanilla}" if vanilla is not None else ""
    print(f"gateway: http://{bound_address(listener)} → {upstream}{beside}", file=sys.stderr, flush=True)
    engines = Engines(upstream, vanilla, speculation=not options.no_speculation)
    run(Proxy(engines, api_key=api_key, max_body=options.max_body), listener, control, grace_seconds=options.grace)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m console.gateway", description=__doc__, epilog=_EXAMPLE)
    parser.add_argument("--listen", default="127.0.0.1:8000", metavar="HOST:PORT", help="the public address")
    parser.add_argument("--upstream", required=True, metavar="PATH", help="unix socket of vLLM's API server")
    parser.add_argument(
        "--no-speculation", action="store_true",
        help="that engine does not draft: it gets min_p and logit_bias, which vLLM refuses beside speculation",
    )  # fmt: skip
    parser.add_argument(
        "--vanilla-upstream", metavar="PATH",
        help="unix socket of a vLLM without speculation: for the vanilla lane, hints, min_p and logit_bias",
    )  # fmt: skip
    parser.add_argument("--control", required=True, metavar="PATH", help="unix socket for the station")
    parser.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="file with the API key (else SPECDECK_API_KEY)"
    )
    parser.add_argument("--max-body", type=int, default=64 * 1024 * 1024, metavar="BYTES", help="largest request body")
    parser.add_argument("--grace", type=float, default=10.0, metavar="SECONDS", help="to finish streams after SIGTERM")
    return parser


def _socket_path(text: str, option: str) -> Path:
    path = Path(text.removeprefix("ipc://"))
    if len(str(path)) > _SOCKET_PATH_LIMIT:
        raise UsageError(f"{option} {path}: a unix socket path may have {_SOCKET_PATH_LIMIT} bytes at most")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {path}: the directory {path.parent} does not exist")
    return path


def _vanilla_path(text: str | None, upstream: Path) -> Path | None:
    if text is None:
        return None
    path = _socket_path(text, "--vanilla-upstream")
    if path == upstream:
        raise UsageError(f"--vanilla-upstream {path}: this is --upstream; give the socket of a second engine")
    return path


def _say(error: Exception, code: int) -> int:
    print(f"gateway: {error}", file=sys.stderr)
    return code
