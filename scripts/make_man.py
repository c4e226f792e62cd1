"""Print the manual page: `make man` keeps it in man/privacyfunnel.1."""

import sys

from privacyfunnel.cli import app
from privacyfunnel.cli.command_descriptions import manual

assert app.registered_commands  # all commands are known once the room is imported
sys.stdout.write(manual())
