"""What ε means, in beliefs and in what an analyst gets: for whoever has to choose it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from privacyfunnel.cli import text_format
from privacyfunnel.errors import ParameterError
from privacyfunnel.spec.checks import epsilon_of_factor

if TYPE_CHECKING:
    from privacyfunnel.estimation.expected_precision import Consequence
    from privacyfunnel.model.promises import Promise

PRIOR = 0.3  # a belief that everybody can imagine
COLUMNS = 4  # that a table for choosing shows


def resolve_epsilon(epsilon: float | None, factor: float | None) -> float | None:
    """The ε that is meant: given itself, or as the factor e^ε."""
    if epsilon is not None and factor is not None:
        raise ParameterError("--factor and --epsilon say the same thing; both were given. Give one of them.")
    return epsilon if factor is None else epsilon_of_factor(factor)


def meaning(promise: Promise, epsilon: float, secret: str, commonest: float | None = None) -> str:
    """What a promise of that size leaves of a belief; `commonest` is the share of the secret's commonest value."""
    said = f"a belief of {100 * PRIOR:.0f} % about {secret} may become {_format_belief_range(promise, epsilon, PRIOR)}"
    if commonest is None:
        return said
    ends = _format_belief_range(promise, epsilon, commonest)
    return f"{said}; one of {100 * commonest:.0f} %, the share of its commonest value, {ends}"


def _format_belief_range(promise: Promise, epsilon: float, prior: float) -> str:
    least, most = promise.belief_bounds(prior, epsilon)
    return f"{100 * least:.0f} to {100 * most:.0f} %"


def format_epsilon_choices(found: Sequence[Consequence], secret: str) -> list[str]:
    """A table of what each ε allows and gives."""
    from privacyfunnel.estimation.expected_precision import format_points

    names = [" × ".join(told.columns) for told in next((one.shares for one in found if one.shares), ())][:COLUMNS]
    lines = []
    for one in found:
        epsilon = one.promise.epsilon
        errors = {" × ".join(told.columns): f"±{format_points(told.average)}" for told in one.shares}
        shown = [errors.get(name, "") for name in names]
        lines.append(
            [f"{epsilon:g}", f"{_format_factor(epsilon)}", _format_belief_range(one.promise, epsilon, PRIOR), *shown]
        )
    header = ["ε", "factor", f"{100 * PRIOR:.0f} % becomes", *names]
    unknown = next((one.unknown for one in found if one.unknown), "")
    return [
        f"What an ε would mean for {secret}, and how near an analyst would come to each share, in points on average "
        "(95 %):",
        "",
        text_format.format_table(header, lines, ">>>" + ">" * len(names)),
        *([f"Shares are not told beforehand where {unknown}."] if unknown else []),
        "",
    ]


def _format_factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}"
