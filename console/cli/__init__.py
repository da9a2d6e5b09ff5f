"""The command line. Here is only what `specdeck --help` needs; each command's module is imported when it runs."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `specdeck` script."""
    from console.cli.root import root

    root(prog_name="specdeck")
