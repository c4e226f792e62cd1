"""`python -m privacyfunnel.spark`, and what spark-submit is given: design, apply and sanitise on a cluster."""

from privacyfunnel.cli.cluster import CALLED, commands
from privacyfunnel.cli.frame import program

if __name__ == "__main__":
    program(commands, CALLED)
