"""`python -m privacyfunnel.spark`, and what spark-submit is given: design, apply and sanitise on a cluster."""

from privacyfunnel.cli.application import program
from privacyfunnel.cli.spark_commands import PROGRAM_NAME, commands

if __name__ == "__main__":
    program(commands, PROGRAM_NAME)
