"""The page that sets every figure beside what the paper reports."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from privacyfunnel.experiments.experiment import Experiment, Findings, Record

LIBRARIES = ("numpy", "scipy", "highspy", "matplotlib", "pycddlib-standalone")
PAPER = (
    "M. Lopuhaä-Zwakenberg, H. Tong, B. Škorić, *Data Sanitisation Protocols for the Privacy Funnel with Differential "
    "Privacy Guarantees*"
)


def render_page(
    experiments: Sequence[Experiment],
    records: Mapping[str, Sequence[Record]],
    *,
    folder: str,
    command: str,
    quick: bool,
    seconds: float,
) -> str:
    """The page in Markdown, its pictures in `folder` beside it."""
    parts = [
        "# The paper's experiments, again\n",
        f"Written by `{command}`: each figure of section VII of {PAPER}, beside what the paper reports. "
        "The words about our numbers are put together from the numbers themselves. "
        "Logarithms are natural: information is in nats.\n",
    ]
    if quick:
        parts.append(
            "**This was a quick run**: fewer draws, fewer values of ε and shorter time limits than the paper's.\n"
        )
    for experiment in experiments:
        parts.append(_section(experiment, experiment.findings(records[experiment.name]), folder))
    parts.append(_provenance(command, seconds))
    return "\n".join(parts)


def _section(experiment: Experiment, findings: Findings, folder: str) -> str:
    columns = "\n".join(f"- `{name}`: {what}" for name, what in experiment.columns.items())
    return f"""## {experiment.number}. {experiment.title}

![{experiment.picture}.]({folder}/{experiment.name}.svg)

**The paper.** {findings.paper}

**Here.** {findings.ours}

{findings.verdict}

<details><summary>Numbers: <a href="{folder}/{experiment.name}.csv">{experiment.name}.csv</a>
(<a href="{folder}/{experiment.name}.png">PNG</a>)</summary>

{columns}

</details>
"""


def _provenance(command: str, seconds: float) -> str:
    from privacyfunnel import __version__

    return f"""## How this was made

- Command: `{command}`, {seconds / 60:.1f} minutes on {os.cpu_count()} cores, a process per core. Times in figures
  are processor time of one thread; time limits are by the clock on the wall.
- Seeds: draw i of a figure is `numpy.random.default_rng([i, c, a¹, …, aᵐ])`; the CSV files name the seed of every row.
- Versions: privacyfunnel {__version__}, Python {platform.python_version()}, {", ".join(map(_version, LIBRARIES))}.
- Data: UCI Adult (Becker and Kohavi 1996, CC BY 4.0), all 48,842 records, `?` as a category of its own.
"""


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return f"{library} not installed"
