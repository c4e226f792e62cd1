"""`reproduce`: the paper's experiments again, each figure as SVG, PNG and CSV, and one page about all of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from privacyfunnel.atomic_files import atomic_file, check_target, ensure_folder
from privacyfunnel.errors import ParameterError
from privacyfunnel.experiments.adult_curves import ADULT
from privacyfunnel.experiments.experiment import Experiment, Progress, Record, run_experiments
from privacyfunnel.experiments.grr_cr import ALPHA_EPSILON, ALPHA_UTILITY, GRR_CR
from privacyfunnel.experiments.ldp_lip import LDP_HALF_LIP, LDP_LIP
from privacyfunnel.experiments.lip_srlip import LIP_SRLIP
from privacyfunnel.experiments.reproduction_page import render_page
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
    """What to type to do this again; where a folder lies on this machine is nobody's business."""
    words = ["privacyfunnel", "reproduce"]
    if len(chosen) < len(EXPERIMENTS):
        words += [experiment.name for experiment in chosen]
    return " ".join([*words, "--into", "DIR" if into.is_absolute() else into.as_posix(), *["--quick"] * quick])


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
