"""`reproduce`: the paper's experiments again, each figure as SVG, PNG and CSV, and one page about all of them."""

from __future__ import annotations

import csv
import io
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

from privacyfunnel.atomic_files import atomic_file, check_target, ensure_folder
from privacyfunnel.errors import ParameterError
from privacyfunnel.experiments.adult_curves import ADULT
from privacyfunnel.experiments.experiment import Experiment, Findings, Progress, Record, run_experiments
from privacyfunnel.experiments.grr_cr import ALPHA_EPSILON, ALPHA_UTILITY, GRR_CR
from privacyfunnel.experiments.ldp_lip import LDP_HALF_LIP, LDP_LIP
from privacyfunnel.experiments.lip_srlip import LIP_SRLIP
from privacyfunnel.hints import option_name
from privacyfunnel.names import suggest_name

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (LDP_LIP, LDP_HALF_LIP, LIP_SRLIP, ADULT, GRR_CR, ALPHA_UTILITY, ALPHA_EPSILON)
}
PAGE, FOLDER = "reproduction.md", "reproduction"
KINDS = ("csv", "svg", "png")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was written: the page, and the files of each figure; and how long it took."""

    page: Path
    files: tuple[Path, ...]
    seconds: float


def reproduce(
    figures: Sequence[str] = (),
    into: str | Path = ".",
    *,
    quick: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Reproduction:
    """Run the experiments of these figures (all by default) and write them into a folder.

    The folder receives `reproduction.md` and `reproduction/FIGURE.{csv,svg,png}`. With `quick` there are fewer draws,
    fewer ε and shorter time limits.

    Raises
    ------
    ParameterError
        If there is no figure of such a name.
    OutputError
        If a file exists already and `force` was not given. This is checked before anything is computed.
    """
    chosen = [_find_experiment(name) for name in dict.fromkeys(figures)] or list(EXPERIMENTS.values())
    chosen.sort(key=lambda experiment: experiment.number)
    page_file, figures_folder = Path(into) / PAGE, Path(into) / FOLDER
    files = {
        (experiment.name, kind): figures_folder / f"{experiment.name}.{kind}" for experiment in chosen for kind in KINDS
    }
    with ensure_folder(figures_folder):
        for file in (page_file, *files.values()):
            check_target(file, force=force)
        start = perf_counter()
        records = run_experiments(chosen, quick=quick, progress=progress)
        from privacyfunnel.experiments.figures import draw_figure

        content = {(name, "csv"): _csv(found) for name, found in records.items()}
        for name, found in records.items():
            content |= {(name, kind): picture for kind, picture in draw_figure(name, found).items()}
        seconds = perf_counter() - start
        command = _command(chosen, Path(into), quick)
        text = render_page(chosen, records, folder=FOLDER, command=command, quick=quick, seconds=seconds)
        with ExitStack() as together:  # every file is written beside its name before the first is renamed
            for key, file in files.items():
                together.enter_context(atomic_file(file, force=force)).write_bytes(content[key])
            together.enter_context(atomic_file(page_file, force=force)).write_text(text, encoding="utf-8")
    return Reproduction(page_file, tuple(files.values()), seconds)


def _command(chosen: Sequence[Experiment], into: Path, quick: bool) -> str:
    """What to type to do this again; an absolute path is left out."""
    names = [experiment.name for experiment in chosen] if len(chosen) < len(EXPERIMENTS) else []
    folder = "DIR" if into.is_absolute() else into.as_posix()
    return " ".join(["privacyfunnel reproduce", *names, option_name("into"), folder, *[option_name("quick")] * quick])


def _find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        known = list(EXPERIMENTS)
        raise ParameterError(
            f"A figure is one of {', '.join(known)}; there is none called '{name}'.{suggest_name(name, known)}"
        )
    return EXPERIMENTS[name]


def _csv(records: Sequence[Record]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in record.items()})
    return text.getvalue().encode()


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
