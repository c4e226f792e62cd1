"""`solve`: a contingency table in, the best protocol's numbers out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privacyfunnel.cli import words
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.options import Epsilon, For, Gap, MethodOption, PromiseName, PromiseOption, SeesSecret, TimeLimit


def solve(
    counts: Annotated[
        Path, typer.Argument(readable=False, help="A CSV file: first column the secret's labels, header the values.")
    ],
    *,
    epsilon: Epsilon,
    promise: PromiseOption = PromiseName.LIP,
    method: MethodOption = "optimal",
    for_: For = "information",
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
    from privacyfunnel.model.uses.called import use_called

    wanted = promise_called(promise.value, epsilon)
    use = use_called(for_)
    joint = read_counts(counts)
    start = time.perf_counter()
    with work_shown() as (progress, _):
        options = Options(sees_secret=sees_secret, use=use, effort=Effort(gap, time_limit, progress))
        found = method_called(method).design(joint, wanted, options)
    seconds = time.perf_counter() - start
    worth = found.worth
    content = {
        "promise": promise.value,
        "epsilon": wanted.epsilon,
        "method": method,
        "sees_secret": found.protocol.sees_secret,
        "entropy": entropy(joint.p_x),
        "utility": found.information,
        "use": worth.use.called,
        "value": worth.value,
        "bound": worth.bound,
        "unit": worth.use.unit,
        "less_is_better": worth.use.less_is_better,
        "leakage": {name: kind(0).leakage(joint, found.protocol) for name, kind in PROMISES.items()},
        "outputs": found.outputs,
        "seconds": seconds,
    }
    answer(as_json, content, _told(content))


def _told(content: dict[str, Any]) -> str:
    utility, value, bound, whole = content["utility"], content["value"], content["bound"], content["entropy"]
    leaks = [f"{name.upper()} {words.epsilon(value)}" for name, value in content["leakage"].items()]
    of_information = content["use"] == "information"
    unit = " nats" if of_information else ""
    proved = "none proved" if bound is None else f"{bound:.6f}{unit}, gap {abs(bound - value):.1e}"
    return words.facts(
        [
            *([] if of_information else [(content["use"], f"{value:.6f}, {content['unit']}")]),
            ("utility", f"{utility:.6f} nats, {words.share(utility, whole)} of H(X) = {whole:.6f}"),
            ("bound", proved),
            ("leakage", ", ".join(leaks)),
            ("outputs", words.many(content["outputs"])),
            ("seconds", f"{content['seconds']:.3f}"),
        ]
    )
