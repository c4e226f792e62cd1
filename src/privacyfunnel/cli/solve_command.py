"""`solve`: a contingency table in, the best protocol's numbers out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.spec_options import Given, build_spec, takes_spec, with_default
from privacyfunnel.formatting import format_percent

if TYPE_CHECKING:
    from privacyfunnel.model.credal.credal_sets import Comparable
    from privacyfunnel.model.joint import Joint
    from privacyfunnel.model.promises import Promise


@takes_spec(
    *("epsilon", "factor", "promise", "population", "average", "sees_secret"),
    *("use", "ordered", "method", "gap", "time_limit"),
    use=with_default("use", "information"),
    method=with_default("method", "optimal"),
)
def solve(
    counts: Annotated[
        Path, typer.Argument(readable=False, help="A CSV file: first column the secret's labels, header the values.")
    ],
    *,
    given: Given,
    as_json: Json = False,
) -> None:
    """Find the protocol for a table of counts, and say how good it is and how good any could be."""
    import time

    from privacyfunnel.cli.application import show_progress
    from privacyfunnel.designs.methods import find_method
    from privacyfunnel.designs.optimal.privacy_funnel import secret_information
    from privacyfunnel.model.contingency_csv import read_counts
    from privacyfunnel.model.information import entropy
    from privacyfunnel.model.promises import YARDSTICKS
    from privacyfunnel.model.protocols.channel_protocol import Protocol

    average_only = "average" in given and not {"epsilon", "factor"} & given.keys()
    spec = build_spec(None, given, method="optimal", average_only=average_only)
    wanted, method, average = spec.promise_value, find_method(spec.method), spec.average
    epsilon = None if average_only else wanted.epsilon
    joint = read_counts(counts)
    wanted = spec.promise_for(joint)
    start = time.perf_counter()
    with show_progress() as (progress, _):
        found = method.design(joint, wanted, spec.options(progress))
    seconds = time.perf_counter() - start
    worth = found.worth
    content = {
        "promise": None if average_only else spec.promise,
        "epsilon": epsilon,
        "average": average,
        "method": method.name,
        "sees_secret": found.protocol.sees_secret,
        "entropy": entropy(joint.p_x),
        "utility": found.information,
        "bound_nats": found.bound,
        "use": worth.use.full_name,
        "value": worth.value,
        "bound": worth.bound,
        "unit": worth.use.unit,
        "stopped": worth.stopped,
        "strategy": worth.strategy,
        "less_is_better": worth.use.less_is_better,
        "about_secret": None if average is None else secret_information(joint, cast(Protocol, found.protocol)),
        "population": None
        if spec.confidence is None
        else _population_content(wanted, spec.confidence, joint, found.protocol),
        "leakage": {name: kind(0).leakage(joint, found.protocol) for name, kind in YARDSTICKS.items()},
        "outputs": found.outputs,
        "seconds": seconds,
    }
    answer(as_json, content, _format_result(content))


def _population_content(promise: Promise, confidence: float, joint: Joint, protocol: Comparable) -> dict[str, Any]:
    return {"confidence": confidence, "rows": joint.total, "epsilon": promise.leakage(joint, protocol)}


def _format_result(content: dict[str, Any]) -> str:
    utility, value, bound, whole = content["utility"], content["value"], content["bound"], content["entropy"]
    leaks = [f"{name.upper()} {text_format.format_epsilon(value)}" for name, value in content["leakage"].items()]
    of_information = content["use"] == "information"
    unit = " nats" if of_information else ""
    no_more = None if of_information else content["bound_nats"]
    most = "" if no_more is None else f"; no protocol keeps more than {no_more:.6f}"
    proved = "none proved" if bound is None else f"{bound:.6f}{unit}, gap {abs(bound - value):.1e}"
    return text_format.format_facts(
        [
            *([] if of_information else [(content["use"], f"{value:.6f}, {content['unit']}")]),
            ("utility", f"{utility:.6f} nats, {format_percent(utility / (whole or 1))} of H(X) = {whole:.6f}{most}"),
            ("bound", proved),
            *(
                [("search", text_format.explain_stop(content["stopped"]))]
                if content["stopped"] not in (None, "gap")
                else []
            ),
            *([("average", _format_average(content))] if content["average"] is not None else []),
            ("leakage", ", ".join(leaks)),
            *([("population", _format_population(content["population"]))] if content["population"] else []),
            ("outputs", text_format.format_count(content["outputs"])),
            ("seconds", f"{content['seconds']:.3f}"),
        ]
    )


def _format_average(content: dict[str, Any]) -> str:
    measured = f"I(S;Y) = {content['about_secret']:.6f} nats of {content['average']:.6f} allowed"
    return measured if content["promise"] else f"{measured}; no promise bounds the worst record, which leaks as stated"


def _format_population(people: dict[str, Any]) -> str:
    return (
        f"ε = {text_format.format_epsilon(people['epsilon'])} for the people whom the {people['rows']:,} rows "
        "are an independent "
        f"sample of, with {100 * people['confidence']:g} % confidence"
    )
