"""What ε means, in beliefs and in what an analyst gets: for whoever has to choose it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from privacyfunnel.cli import text_format
from privacyfunnel.errors import ParameterError
from privacyfunnel.formatting import format_factor, format_number, format_percent, format_percent_range, format_points
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
    moved = _format_belief_range(promise, epsilon, PRIOR)
    said = f"a belief of {format_percent(PRIOR)} about {secret} may become {moved}"
    if commonest is None:
        return said
    ends = _format_belief_range(promise, epsilon, commonest)
    return f"{said}; one of {format_percent(commonest)}, the share of its commonest value, {ends}"


def _format_belief_range(promise: Promise, epsilon: float, prior: float) -> str:
    return format_percent_range(*promise.belief_bounds(prior, epsilon))


def format_epsilon_choices(found: Sequence[Consequence], secret: str) -> list[str]:
    """A table of what each ε allows and gives."""
    names = [" × ".join(told.columns) for told in next((one.shares for one in found if one.shares), ())][:COLUMNS]
    lines = []
    for one in found:
        epsilon = one.promise.epsilon
        errors = {" × ".join(told.columns): f"±{format_points(told.average)}" for told in one.shares}
        shown = [errors.get(name, "") for name in names]
        lines.append(
            [format_number(epsilon), format_factor(epsilon), _format_belief_range(one.promise, epsilon, PRIOR), *shown]
        )
    header = ["ε", "factor", f"{format_percent(PRIOR)} becomes", *names]
    unknown = next((one.unknown for one in found if one.unknown), "")
    return [
        f"What an ε would mean for {secret}, and how near an analyst would come to each share, in points on average "
        "(95 %):",
        "",
        text_format.format_table(header, lines, ">>>" + ">" * len(names)),
        *([f"Shares are not told beforehand where {unknown}."] if unknown else []),
        "",
    ]
