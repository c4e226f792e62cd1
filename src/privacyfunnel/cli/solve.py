"""`solve`: a contingency table in, the best protocol's numbers out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import words
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.options import (
    Epsilon,
    Gap,
    MethodOption,
    Population,
    PromiseName,
    PromiseOption,
    SeesSecret,
    TimeLimit,
)

if TYPE_CHECKING:
    from privacyfunnel.model.comparable import Comparable
    from privacyfunnel.model.joint import Joint
    from privacyfunnel.model.promises import Promise


def solve(
    counts: Annotated[
        Path, typer.Argument(readable=False, help="A CSV file: first column the secret's labels, header the values.")
    ],
    *,
    epsilon: Epsilon,
    promise: PromiseOption = PromiseName.LIP,
    population: Population = None,
    method: MethodOption = "optimal",
    sees_secret: SeesSecret = False,
    gap: Gap = 1e-6,
    time_limit: TimeLimit = None,
    as_json: Json = False,
) -> None:
    """Find the protocol for a table of counts, and say how good it is and how good any could be."""
    import time

    from privacyfunnel.cli.progress import work_shown
    from privacyfunnel.designs.methods import Effort, Options
    from privacyfunnel.designs.methods import method as method_called
    from privacyfunnel.model.counts import read_counts
    from privacyfunnel.model.information import entropy
    from privacyfunnel.model.promises import PROMISES
    from privacyfunnel.model.promises import promise as promise_called

    wanted = promise_called(promise.value, epsilon)
    joint = read_counts(counts)
    if population is not None:
        wanted = wanted.for_population(joint, population)
    start = time.perf_counter()
    with work_shown() as (progress, _):
        options = Options(sees_secret=sees_secret, effort=Effort(gap, time_limit, progress))
        found = method_called(method).design(joint, wanted, options)
    seconds = time.perf_counter() - start
    content = {
        "promise": promise.value,
        "epsilon": wanted.epsilon,
        "method": method,
        "sees_secret": found.protocol.sees_secret,
        "entropy": entropy(joint.p_x),
        "utility": found.information,
        "bound": found.bound,
        "population": None if population is None else _of_people(wanted, population, joint, found.protocol),
        "leakage": {name: kind(0).leakage(joint, found.protocol) for name, kind in PROMISES.items()},
        "outputs": found.outputs,
        "seconds": seconds,
    }
    answer(as_json, content, _told(content))


def _of_people(promise: Promise, confidence: float, joint: Joint, protocol: Comparable) -> dict[str, Any]:
    return {"confidence": confidence, "rows": joint.total, "epsilon": promise.leakage(joint, protocol)}


def _told(content: dict[str, Any]) -> str:
    utility, bound, whole = content["utility"], content["bound"], content["entropy"]
    leaks = [f"{name.upper()} {words.epsilon(value)}" for name, value in content["leakage"].items()]
    proved = "none proved" if bound is None else f"{bound:.6f} nats, gap {max(0.0, bound - utility):.1e}"
    return words.facts(
        [
            ("utility", f"{utility:.6f} nats, {words.share(utility, whole)} of H(X) = {whole:.6f}"),
            ("bound", proved),
            ("leakage", ", ".join(leaks)),
            *([("population", _of_people_told(content["population"]))] if content["population"] else []),
            ("outputs", words.many(content["outputs"])),
            ("seconds", f"{content['seconds']:.3f}"),
        ]
    )


def _of_people_told(people: dict[str, Any]) -> str:
    return (
        f"ε = {words.epsilon(people['epsilon'])} for the people whom the {people['rows']:,} rows are an independent "
        f"sample of, with {100 * people['confidence']:g} % confidence"
    )
