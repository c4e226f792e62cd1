r"""Product protocols that keep SRLIP: budgets that are measured, scaled and split, never assumed.

The paper's recipe gives every attribute :math:`\varepsilon/m` and relies on a theorem that does not hold. Here the
product's SRLIP value is computed. First all attributes get one :math:`\varepsilon'`, as large as the product allows.
Then, attribute by attribute, a factor is replaced by the best one next to the others, which splits the budget where it
is worth most, until nothing improves. Smaller :math:`\varepsilon'` leave more room for that, so a few are tried.

A third way rests on a theorem that does hold: factors chosen in order, each with a budget given what those before it
publish. What it finds is one more start for the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from privacyfunnel.designs.optimal.solver_interface import StopReason
from privacyfunnel.designs.product.product_factors import LARGEST_EPSILON, Factors
from privacyfunnel.engine.clock import Clock
from privacyfunnel.errors import ParameterError, SizeError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.comparisons import Leak
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.product_protocol import ProductProtocol, worst_leak
from privacyfunnel.model.uses.use import Information, UseValue

HALVINGS = 12  # of the interval in which the largest common ε' lies
LARGEST_SCALE = 16.0  # ε' is looked for up to this many ε
STARTS = (0.7, 0.45, 0.25)  # shares of that ε' from which the split is improved as well
SWEEPS = 4  # over all factors: the fourth was never seen to gain
WORTH = 1e-4  # nats: an exchange that gains less ends the search

SECONDS = 90.0  # for a search
HALVING_SHARE, STARTING_SHARE = 0.4, 0.5  # of these for the common ε'; and of the rest, for where to begin
MOST_SEARCHED = 10**6  # outputs of the products that a search goes through

PAPER, SOUND = "paper", "sound"


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A product protocol, where it leaks most, and the ε' that each attribute started from."""

    protocol: ProductProtocol
    information: float  # I(X;Y) in nats
    leak: Leak
    promise: Promise
    budgets: tuple[float, ...]

    joint: Joint
    bound: None = None  # nothing is proved about the best product
    drawn: None = None  # it needs counts only
    stopped: StopReason = StopReason.NOTHING  # what ended the search

    @property
    def excess(self) -> float:
        """By how much the product breaks its promise; 0 where it keeps it."""
        return max(0.0, self.leak.epsilon - self.promise.epsilon)

    @property
    def outputs(self) -> int:
        """How many different outputs there are."""
        return self.protocol.outputs

    @property
    def worth(self) -> UseValue:
        """Products are sought by the information they keep."""
        return UseValue(Information(), self.information, self.bound, self.stopped.value)

    def as_values(self) -> Product:
        """Every attribute's output replaced by a value drawn from what it stands for; the promise stands."""
        shown = _measure(self.joint, self.promise, self.protocol.as_values(self.joint), self.budgets)
        return replace(shown, stopped=self.stopped)

    def seal(self) -> SealedProtocol:
        """The product as integers on which the promise was checked, exactly."""
        return seal(self.protocol, self.promise, self.joint)


def product_protocol(
    joint: Joint, promise: Promise, budgets: str | Sequence[float] | None = None, *, seconds: float = SECONDS
) -> Product:
    """The most informative product of per-attribute protocols that was found to keep the promise.

    With `budgets` "paper" (ε/m each) or an ε' per attribute, the product is what these give. `leak`, `excess` say
    whether it keeps its promise: nothing assures that it does, and sealing refuses it where it does not. With "sound",
    ε is split so that the sum is assured (docs/theory.md, Theorem 20), in the best of a few ways. All of it ends after
    `seconds`, with the best that was found.
    """
    check_search_size(joint)
    solved = promise.with_epsilon(min(promise.epsilon, LARGEST_EPSILON))
    factors = Factors(joint, solved, Clock.from_limit(seconds))
    if budgets is None:
        found = _search(factors, solved)
    elif budgets == SOUND:
        found = _sound_product(factors, solved)
    else:
        found = _product_from_budgets(factors, solved, resolve_budgets(joint, solved, budgets))
    return replace(found, promise=promise, stopped=StopReason.TIME if factors.clock.late else StopReason.NOTHING)


def check_search_size(joint: Joint) -> None:
    """Refuse more outputs than can be measured again and again."""
    outputs = math.prod(len(attribute.labels) for attribute in joint.attributes)
    if outputs > MOST_SEARCHED:
        raise SizeError(
            f"A product is sought where at most {MOST_SEARCHED:,} outputs may come out; {joint.m} columns with "
            f"{', '.join(str(len(at.labels)) for at in joint.attributes)} values make {outputs:,}. Publish fewer "
            f"columns, use coarser bins, or promise LIP or LDP with {hint('method', 'chain')}."
        )


def resolve_budgets(joint: Joint, promise: Promise, budgets: str | Sequence[float]) -> tuple[float, ...]:
    """An ε' per attribute."""
    if isinstance(budgets, str):
        if budgets != PAPER:
            raise ParameterError(f"Budgets are '{PAPER}', '{SOUND}' or one ε per published column; not '{budgets}'.")
        return (promise.epsilon / joint.m,) * joint.m
    if len(budgets) != joint.m:
        raise ParameterError(f"Budgets must be one ε per published column; there are {len(budgets)} for {joint.m}.")
    return tuple(check_epsilon(budget) for budget in budgets)


def _product_from_budgets(factors: Factors, promise: Promise, budgets: tuple[float, ...]) -> Product:
    product = factors.product(tuple(factors.solve_alone(j, epsilon) for j, epsilon in enumerate(budgets)))
    return _measure(factors.joint, promise, product, budgets)


def _measure(joint: Joint, promise: Promise, product: ProductProtocol, budgets: tuple[float, ...]) -> Product:
    leak = worst_leak(joint, promise, product)
    return Product(product, product.mutual_information(joint), leak, promise, budgets, joint)


def _sound_product(factors: Factors, promise: Promise) -> Product:
    """Budgets that add up to ε: alike, by what each attribute has to say, or all for one. Much to say comes first."""
    m = factors.joint.m
    h = [entropy(marginal.p_x) for marginal in factors.marginals]
    order = sorted(range(m), key=lambda j: -h[j])
    all_for_one = [[float(k == j) for k in range(m)] for j in order]
    shares = [*all_for_one, [1 / m] * m, [max(x, 0.0) / max(sum(h), 1e-300) for x in h]]
    found: list[Product] = []
    for budgets in (tuple(promise.epsilon * share for share in split) for split in shares):
        if found and factors.clock.late:
            break
        chosen: dict[int, Protocol] = {}
        try:
            for j in order:
                chosen[j] = factors.solve_after(j, chosen, budgets[j]) if budgets[j] > 0 else factors.constant(j)
        except SizeError:  # several factors with many outputs each; one alone has few comparisons
            if not found:
                raise
            continue
        product = factors.product(tuple(chosen[j] for j in range(m)))
        found.append(_measure(factors.joint, promise, product, budgets))
    return max(found, key=lambda product: product.information)


def _search(factors: Factors, promise: Promise) -> Product:
    m, clock = factors.joint.m, factors.clock
    low, high = 0.0, LARGEST_SCALE
    silent = factors.product(tuple(factors.constant(j) for j in range(m)))
    best = _measure(factors.joint, promise, silent, (0.0,) * m)
    halving = clock.part(HALVING_SHARE)
    whole = _product_from_budgets(factors, promise, (LARGEST_SCALE * promise.epsilon,) * m)
    if whole.excess == 0:
        return whole
    for _ in range(HALVINGS):
        if halving.late:
            break
        middle = (low + high) / 2
        found = _product_from_budgets(factors, promise, (middle * promise.epsilon,) * m)
        if found.excess == 0:
            low, best = middle, found if found.information > best.information else best
        else:
            high = middle
    starts = [best]
    starting = clock.part(STARTING_SHARE)
    for share in STARTS:
        if low > 0 and not starting.late:
            starts.append(_product_from_budgets(factors, promise, (share * low * promise.epsilon,) * m))
    if not starting.late:
        starts.append(_sound_product(factors, promise))
    starts = sorted((start for start in starts if start.excess == 0), key=lambda start: -start.information)
    improved = [_improve(factors, start) for start in starts]
    return max(improved, key=lambda product: product.information)


def _improve(factors: Factors, product: Product) -> Product:
    """Exchange one factor after the other for the best one next to the rest, as long as that pays."""
    for _ in range(SWEEPS):
        before = product.information
        for j in range(factors.joint.m):
            if factors.clock.late:
                return product
            try:
                factor = factors.solve_beside(j, product.protocol, product.promise.epsilon)
            except SizeError:  # what was found so far stands
                return product
            if factor is None:
                continue
            exchanged = tuple(factor if k == j else old for k, old in enumerate(product.protocol.factors))
            found = _measure(factors.joint, product.promise, factors.product(exchanged), product.budgets)
            if found.excess == 0 and found.information > product.information:
                product = found
        if product.information - before < WORTH:
            break
    return product
