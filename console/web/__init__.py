"""The console in browsers: each tab is a console process of its own, served by textual-serve behind a guard."""
