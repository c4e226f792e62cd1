"""The command line: parses arguments, calls the rooms, prints what they answer.

Nothing heavy is imported before a command runs, so that `privacyfunnel --help` is there at once.
"""

from privacyfunnel.cli import sanitise, solve
from privacyfunnel.cli.frame import app, main

app.command()(sanitise.sanitise)
app.command()(solve.solve)

__all__ = ["app", "main"]
