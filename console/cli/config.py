"""`specdeck config`: the settings file and what holds."""

from __future__ import annotations

from pathlib import Path

import click

from console.cli.outcomes import BadInput, say


@click.group(epilog="Example: specdeck config show")
def config() -> None:
    """Settings: command line before environment before specdeck.toml before default.

    \b
    The file has five tables, all of them optional:
      [serve]     options of specdeck, demo and serve: max_k = 4, policy = "advise"
      [web]       options of specdeck web: port = 8010
      [deciding]  numbers of the adaptive mode: window_s = 120
      [console]   theme = "dark", "light" or "clear"
      [keys]      a key for an action: pause = "f6"
      [notify]    what tells you of alerts: bell = "warn", webhook = "https://…"
    """


@config.command(epilog="Example: specdeck config path")
def path() -> None:
    """Where the settings file is, or would be. Also SPECDECK_CONFIG."""
    from console.cli.settings.place import settings_path

    found = settings_path()
    click.echo(found)
    if not found.exists():
        say("there is no file yet: everything is as by default")


@config.command(epilog="Example: specdeck config validate ./specdeck.toml")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def validate(file: Path | None) -> None:
    """Check a settings file, by default the one in force. Names everything that is wrong; exit code 2."""
    from console.cli.settings.place import settings_path
    from console.cli.settings.reading import SettingsError, read_settings

    path = file or settings_path()
    if file is not None and not file.exists():
        raise BadInput(f"{file}: there is no such file")
    try:
        found = read_settings(path)
    except SettingsError as error:
        for problem in error.problems:
            say(f"{error.path}: {problem}")
        raise BadInput(f"{len(error.problems)} thing{'s' * (len(error.problems) > 1)} to mend") from error
    say(f"{path}: in order" if found.exists else f"{path}: there is no file, everything is as by default")


@config.command(epilog="Example: specdeck config show --set")
@click.option("--set", "only_set", is_flag=True, help="Only what is not as by default.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects: name, value, source, place.")
def show(only_set: bool, as_json: bool) -> None:
    """Every setting, its value, and whether the environment, the file or a default gives it."""
    import msgspec

    from console.cli.settings.defaults import in_force
    from console.cli.settings.notifying import notify_settings
    from console.cli.settings.showing import settings
    from console.station.deciding_settings import BadDeciding

    try:
        notify_settings(in_force())
        found = [one for one in settings(in_force()) if not only_set or one.source != "default"]
    except BadDeciding as error:
        raise BadInput(str(error)) from error
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        shown = "–" if one.value is None else msgspec.json.encode(one.value).decode()
        click.echo(f"{one.name:<{width}}  {shown:<24} {one.source}{f' ({one.place})' if one.place else ''}")
    if not found:
        say("everything is as by default")
