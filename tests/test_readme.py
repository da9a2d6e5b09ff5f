"""The README says what is true: its key table is the registry's, its commands exist, its example runs."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from console.app.actions import markdown_table
from console.cli.root import COMMANDS, root

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_key_table_is_the_registrys() -> None:
    table = README.partition("<!-- keys")[2].partition("-->\n")[2].partition("<!-- /keys -->")[0]
    assert table.strip() == markdown_table().strip()


def test_every_command_of_the_table_exists_and_every_command_is_in_it() -> None:
    table = README.partition("## Commands")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(?:specdeck )?([a-z]+)(?: |`)", table)) & set(COMMANDS)
    assert named == set(COMMANDS)


def test_every_command_has_an_example_in_its_help() -> None:
    for name in COMMANDS:
        shown = CliRunner().invoke(root, [name, "--help"]).output
        if "Commands:" not in shown:
            assert "Example" in shown, name


def test_every_file_it_points_to_is_there() -> None:
    for path in re.findall(r"\]\((?!http)([^)]+)\)|`((?:sample_traces|engine|tests|docs)/[\w./-]+)`", README):
        name = path[0] or path[1]
        assert (Path(__file__).parent.parent / name).exists(), name
