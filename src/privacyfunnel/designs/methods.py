"""Methods: the names under which protocols are asked for, and what makes each.

Every method answers one call, `Method.design(joint, promise, options)`, with a `Design`: a protocol to be measured
and sealed, and, where one was proved, an upper bound on what any protocol could keep. A new method is a line in
`METHODS`; which line `auto` takes, and why, is in `choice.py` beside it. What a method is told, and what it answers
with, is in `design.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from privacyfunnel import plugins
from privacyfunnel.designs import builders
from privacyfunnel.designs.builders import restrict_to_listed
from privacyfunnel.designs.interface import Design, Effort, Options, Progress, RecordDesign
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.ordinal_scale import check_orders
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.names import suggest_name

__all__ = ["METHODS", "Design", "Effort", "Method", "Options", "Progress", "RecordDesign", "find_method"]

Maker = Callable[[Joint, Promise, Options], Design]

SEES_SECRET, AS_VALUES, AVERAGE = "sees_secret", "as_values", "average"
REAL_OR_SYNTHETIC = "real-or-synthetic"
# What is said where a method cannot follow an option.
REFUSALS = {
    SEES_SECRET: "{method} never looks at the secret; leave out " + hint("sees_secret") + " or use another method.",
    AS_VALUES: "{method} publishes sets, not values; use " + hint("as_", "labels") + " or another method.",
    AVERAGE: "an average is for the method {others}; {method} knows none. Leave it out.",
}


@dataclass(frozen=True, slots=True)
class Method:
    """A way to a protocol: what makes it, and which options it can follow."""

    name: str
    make: Maker
    follows: frozenset[str] = frozenset({AS_VALUES})
    uses: tuple[type[Use], ...] = (Information,)  # what it can be made for, or measured by
    always_sees_secret: bool = False  # at the secret, whether asked to or not
    searches: bool = False  # for as long as it is told to
    answers_anything_else: bool = False  # by a row of its own for values that no row of the table has

    def design(self, joint: Joint, promise: Promise, options: Options | None = None) -> Design:
        """The protocol of this method which keeps the promise.

        >>> from privacyfunnel.model.promises import LIP
        >>> find_method("randomised-response").design(Joint.from_counts([[1, 0], [0, 1]]), LIP(9)).outputs
        2
        """
        options = options or Options()
        orders = options.orders or options.use.orders
        check_orders(orders, joint)
        options = replace(options, orders=orders, use=options.use.with_orders(orders))
        if not self.serves(options.use):
            without_model = (other for other in METHODS.values() if other.make is not _refuse_without_model)
            others = _format_choices([other.name for other in without_model if other.serves(options.use)])
            raise ParameterError(
                f"{self.name} is not made for '{options.use.full_name}'; leave out {hint('use')}, or use the method "
                f"{others}."
            )
        refuse_options(self.name, self.follows, options)
        return self.make(joint, promise if self.answers_anything_else else restrict_to_listed(promise), options)

    def serves(self, use: Use) -> bool:
        """Whether it can be made for that use, or measured by it."""
        return isinstance(use, self.uses)

    def adapt_promise(self, promise: Promise) -> Promise:
        """The promise as this method keeps it: to people with values never seen too, where it has a row for them."""
        return promise.cover_anything_else(self.answers_anything_else)


def refuse_options(method: str, follows: frozenset[str], options: Options) -> None:
    """Refuse what this method cannot follow."""
    for option, sentence in REFUSALS.items():
        if option not in follows and _is_asked(getattr(options, option)):
            others = _format_choices([name for name, other in METHODS.items() if option in other.follows])
            raise ParameterError(sentence.format(method=method, others=others))


def _format_choices(names: Sequence[str]) -> str:
    """Names of which one is to be chosen.

    >>> _format_choices(["a", "b", "c"]), _format_choices(["a"])
    ('a, b or c', 'a')
    """
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _is_asked(option: object) -> bool:
    """Whether anybody asked for it; an average of 0 was asked for."""
    return option is not False and option is not None


def find_method(name: str) -> Method:
    """The method of that name."""
    found = METHODS.get(name) or plugins.load_plugin(plugins.METHODS, name)
    if found is None:
        known = ("auto", *METHODS, *plugins.plugin_names(plugins.METHODS))
        raise ParameterError(
            f"A method is one of {', '.join(known)}; there is none called '{name}'.{suggest_name(name, known)}"
        )
    if not (isinstance(found, Method) and found.name == name):
        raise ParameterError(f"The method '{name}' of another package must be a Method of that name; it is {found!r}.")
    return found


def _refuse_without_model(joint: Joint, promise: Promise, options: Options) -> Design:
    raise ParameterError(
        f"{REAL_OR_SYNTHETIC} draws synthetic records from a published model; there is none. Add "
        f"{hint('prior', 'model')}, or use another method."
    )


_BOTH = frozenset({SEES_SECRET, AS_VALUES})
_EVERY_USE = (Use,)
_TABLE = (
    Method(
        "optimal",
        builders.design_optimum,
        follows=_BOTH | {AVERAGE},
        uses=_EVERY_USE,
        searches=True,
        answers_anything_else=True,
    ),
    Method("randomised-response", builders.design_randomised_response, uses=_EVERY_USE, answers_anything_else=True),
    Method(
        "conditional-reporting",
        builders.design_conditional_reporting,
        follows=_BOTH,
        uses=_EVERY_USE,
        always_sees_secret=True,
        answers_anything_else=True,
    ),
    Method(REAL_OR_SYNTHETIC, _refuse_without_model, uses=(Information, Statistics)),
)
METHODS: Mapping[str, Method] = MappingProxyType({each.name: each for each in _TABLE})
