"""What a station is started with: the command line fills it in, the station process reads it from a private file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from console.notices.settings import From
from console.station.vanilla_engine import arguments_without_speculation, halved, without_speculation
from engine.launch import AUTO, EngineSpec, settled
from engine.records import Method, PolicyMode

OWNED_ENGINE: Final = "e0"
"""Id of the engine that the station itself starts."""

VANILLA_ENGINE: Final = "v0"
"""Id of the one without speculation, where it starts one."""


class StationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All paths absolute: the station runs in a directory of its own."""

    store: str
    """Path of the DuckDB file."""
    model: str = "bundled"
    drafter: str = AUTO
    method: Method | None = None
    max_k: int = 4
    max_num_seqs: int = 32
    max_model_len: int | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = None
    metrics_port: int = 0
    """Port of the station's own `/metrics` on 127.0.0.1; 0 for none."""
    speedup_floor: float = 1.5
    """Realised speedup of an engine below which the judge warns."""
    scrape: str | None = None
    """Address of the `/metrics` of a vLLM that somebody else runs: it is observed, and no engine started."""
    policy: PolicyMode = PolicyMode(mode="adaptive", act=True)
    """The mode that an engine of ours begins with."""
    calibrate: float = 60.0
    """Most seconds of calibration when an engine of ours first serves; 0 for none."""
    confirm: float = 300.0
    """Seconds within which the console wants a raise to be confirmed."""
    vanilla_engine: bool = False
    """Start a second vLLM without speculation, which serves the vanilla lane."""
    vanilla_command: list[str] | None = None
    """Started in its place: a stand-in, for tests of the station itself."""
    deciding: dict[str, float] = {}
    """Numbers of the controller, by the names of `DecidingSettings`; what the environment sets goes before."""
    engine: bool = True
    """False: start no engine, only listen to engines that others start."""
    engine_args: list[str] = []
    """Passed on to vLLM as they are."""
    engine_command: list[str] | None = None
    """Started in place of vLLM: a stand-in that speaks the same sockets, for tests of the station itself."""
    rehearse_command: list[str] | None = None
    """Started in place of `specdeck rehearse`, with the plan behind it: a stand-in, for tests of the station itself."""
    webhook: str | None = None
    """Address that alerts are posted to; what follows its host may be secret."""
    webhook_from: From = "warn"
    """How grave an alert has to be for that."""
    webhook_a_minute: int = 6
    stop_all_on_signal: bool = True
    """SIGTERM and SIGINT end gateway and engine too; False leaves them serving."""
    log: str | None = None
    """Where the station's own output goes, None for the terminal."""

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def engine_spec(self) -> EngineSpec:
        """The owned engine as asked for, its drafter decided; `engine.launch.validate` says whether it can be meant."""
        spec = settled(
            EngineSpec(
                engine=OWNED_ENGINE,
                model=self.model,
                drafter=self.drafter,
                method=self.method,
                max_k=self.max_k,
                max_num_seqs=self.max_num_seqs,
                max_model_len=self.max_model_len,
                extra_args=tuple(self.engine_args),
            )
        )
        return halved(spec) if self.vanilla_engine else spec

    def vanilla_spec(self) -> EngineSpec:
        """The second engine, where `vanilla_engine` asks for one."""
        return without_speculation(self.engine_spec(), VANILLA_ENGINE)


def options_without_speculation(options: StationOptions) -> StationOptions:
    """The same station, its one engine started without speculation: same target, same settings."""
    return msgspec.structs.replace(
        options,
        drafter="none",
        method=None,
        max_k=0,
        policy=PolicyMode(mode="off"),
        calibrate=0.0,
        vanilla_engine=False,
        engine_args=arguments_without_speculation(options.engine_args),
        engine_command=options.vanilla_command if options.engine_command is not None else None,
    )


class OptionsError(ValueError):
    """An options file that cannot be read: names it."""


def write_options(options: StationOptions, path: Path) -> None:
    """Write the options where only their owner reads them: they may hold the API key."""
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(options)))


def read_options(path: Path) -> StationOptions:
    """Raises OptionsError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=StationOptions)
    except (OSError, msgspec.DecodeError) as error:
        raise OptionsError(f"{path}: {error}") from error
