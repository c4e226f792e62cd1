"""The command line: parses arguments, calls the rooms, prints what they answer.

Nothing heavy is imported before a command runs, so that `privacyfunnel --help` is there at once.
"""

from privacyfunnel.cli import (
    apply,
    audit,
    completion,
    curve,
    demo,
    design,
    estimate,
    funnel,
    keys,
    reproduce,
    sanitise,
    scan,
    solve,
    studio,
)
from privacyfunnel.cli.frame import app, main, program

app.command()(demo.demo)
app.command()(scan.scan)
app.command()(sanitise.sanitise)
app.command()(design.design)
app.command()(apply.apply)
app.command()(audit.audit)
app.command()(estimate.estimate)
app.command()(keys.keygen)
app.command()(keys.sign)
app.command()(solve.solve)
app.command()(curve.curve)
app.command()(funnel.funnel)
app.command()(studio.studio)
app.command()(reproduce.reproduce)
app.command()(completion.completion)

__all__ = ["app", "main", "program"]
