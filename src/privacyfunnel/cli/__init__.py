"""The command line: parses arguments, calls the packages, prints their answers.

Nothing heavy is imported before a command runs, so that `privacyfunnel --help` is there at once.
"""

from privacyfunnel.cli import (
    apply_command,
    audit_command,
    check_command,
    completion_command,
    curve_command,
    demo_command,
    design_command,
    estimate_command,
    key_commands,
    ledger_command,
    reproduce_command,
    sanitise_command,
    scan_command,
    solve_command,
    studio_command,
)
from privacyfunnel.cli.application import app, main, program
from privacyfunnel.cli.spec_options import SpecCommand

app.command()(demo_command.demo)
app.command(cls=SpecCommand)(scan_command.scan)
app.command()(check_command.check)
app.command(cls=SpecCommand)(sanitise_command.sanitise)
app.command(cls=SpecCommand)(design_command.design)
app.command(cls=SpecCommand)(apply_command.apply)
app.command(cls=SpecCommand)(audit_command.audit)
app.command(cls=SpecCommand)(estimate_command.estimate)
app.command()(ledger_command.ledger)
app.command()(key_commands.keygen)
app.command()(key_commands.sign)
app.command(cls=SpecCommand)(solve_command.solve)
app.command(cls=SpecCommand)(curve_command.curve)
app.command(cls=SpecCommand)(curve_command.funnel)
app.command()(studio_command.studio)
app.command()(reproduce_command.reproduce)
app.command()(completion_command.completion)

__all__ = ["app", "main", "program"]
