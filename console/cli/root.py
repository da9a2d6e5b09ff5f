"""`specdeck` itself: the list of commands, and what the bare word does."""

from __future__ import annotations

from typing import Any

import click

from console.cli.lazy import Lazy, LazyGroup
from console.cli.options import serving

STARTING = ("demo", "serve")
"""Commands that start a station with the options of `specdeck` itself."""

COMMANDS = {
    "demo": Lazy("console.cli.demo", "demo", "Station, sample traffic and console on the bundled model."),
    "serve": Lazy("console.cli.serve", "serve", "The station without a console; SIGTERM flushes and stops clean."),
    "attach": Lazy("console.cli.attach", "attach", "Console on the running station."),
    "web": Lazy("console.cli.web", "web", "The console in a browser, read-only unless asked."),
    "status": Lazy("console.cli.status", "status", "What runs: processes, sockets, store, engines, policy."),
    "stop": Lazy("console.cli.stop", "stop", "End station, gateway and engine; nothing is left behind."),
    "schedule": Lazy("console.cli.schedule", "schedule", "Draft schedules: check, show K per batch size, convert."),
    "policy": Lazy("console.cli.policy", "policy", "See and change the policy of the running station; undo; history."),
    "rehearse": Lazy(
        "console.cli.rehearse", "rehearse", "Traffic that tries draft lengths, and the operating map that comes of it."
    ),
    "drill": Lazy("console.cli.drill", "drill", "Force each way out on a live station, and certify that it works."),
    "map": Lazy("console.cli.map", "map_", "Under which load which K helps: the operating map; export, diff."),
    "report": Lazy("console.cli.report", "report", "Per-bucket figures of the station, a store or a trace."),
    "compare": Lazy("console.cli.compare", "compare", "Two windows or two records side by side, per bucket."),
    "alerts": Lazy("console.cli.alerts", "alerts", "What the judge found in the station, a store or a trace."),
    "replay": Lazy("console.cli.replay", "replay", "Replay a trace under a virtual clock."),
    "whatif": Lazy("console.cli.whatif", "whatif", "What another policy would have done with recorded traffic."),
    "trace": Lazy("console.cli.trace", "trace", "Trace files: record, info, convert, cut."),
    "export": Lazy(
        "console.cli.export", "export", "Write a store, trace, Parquet folder or CSV, also while recording."
    ),
    "import": Lazy(
        "console.cli.import_", "import_", "Take records of others into a store: vLLM's answers, /metrics, log."
    ),
    "sql": Lazy("console.cli.sql", "sql", "Ad-hoc SQL on a snapshot."),
    "bundle": Lazy(
        "console.cli.bundle", "bundle", "One redacted file for a bug report: records, config, logs, doctor."
    ),
    "config": Lazy("console.cli.config", "config", "Settings: show with the source of each, validate, path."),
    "drafter": Lazy("console.cli.drafter", "drafter", "Train an EAGLE-3 drafter for a target; measure one."),
    "doctor": Lazy("console.cli.doctor", "doctor", "Check engine, model, sockets, disk: one line and one remedy each."),
}


class Root(LazyGroup):
    """Takes defaults from the settings file, for what starts a station."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        alone = not args or args[0].startswith("-")
        if (alone or args[0] in (*STARTING, "web")) and not {"-h", "--help", "--version"} & set(args):
            from console.cli.settings.defaults import file_defaults

            extra["default_map"] = file_defaults()
        return super().make_context(info_name, args, parent, **extra)


@click.group(
    cls=Root, lazy=COMMANDS, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@serving
@click.version_option(package_name="specdeck", message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context, /, **options: Any) -> None:
    """The operator's console for speculative decoding.

    Alone: starts a station if none runs, and opens the console on it.

    \b
    Example:
      specdeck --model ./my-model --drafter ngram --max-k 4
    """
    if ctx.invoked_subcommand is not None:
        return
    from console.cli.console import open_console

    ctx.exit(open_console(options))
