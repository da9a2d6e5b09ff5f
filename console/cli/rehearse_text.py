"""A rehearsal as text: Markdown to keep and to show, a shorter form for the terminal. Nothing is computed here."""

from __future__ import annotations

from console.cli.rehearse_text_markdown import markdown
from console.cli.rehearse_text_table import table

__all__ = ["markdown", "table"]
