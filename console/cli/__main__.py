"""`python -m console.cli`: the same as the `specdeck` script."""

from console.cli import main

main()
