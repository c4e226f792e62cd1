"""What there is to know about a release beyond its certificate, each computed once, when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, cast

from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import exact_worst_leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP
from privacyfunnel.release.design import DesignResult
from privacyfunnel.release.findings.population import AT_A_GLANCE, PopulationBound, population_bound
from privacyfunnel.release.findings.rare_values import rare_secret_advice, rare_value_advice
from privacyfunnel.release.findings.sparseness import sparseness_advice
from privacyfunnel.spec import ReleaseSpec

T = TypeVar("T")


class Findings:
    """The owner's findings about a design; they may quote counts."""

    def __init__(self, design: DesignResult, spec: ReleaseSpec) -> None:
        self._design, self._spec = design, spec
        self._others: dict[str, Any] = {}

    @cached_property
    def known_values_leak(self) -> float | None:
        """ε against an attacker who knows X, where the mechanism reads S."""
        law = self._design.sealed.mechanism
        return SRLIP(0).leakage(self._design.joint, law.protocol) if law.sees_secret else None

    @cached_property
    def sparse(self) -> str:
        """How far combinations reveal the secret, and what a smaller table would change."""
        design = self._design
        return "" if self._spec.is_private_design else sparseness_advice(design.joint, design.sealed.domain.bins)

    @cached_property
    def rare(self) -> tuple[str, ...]:
        """Values with few rows, and what merging rare secrets would keep; a sentence each."""
        if self._spec.is_private_design:
            return ()
        values = rare_value_advice(self._design.joint)
        return tuple(filter(None, (values, rare_secret_advice(self._design, self._spec.secret))))

    @cached_property
    def people(self) -> PopulationBound | None:
        """ε for the population that the rows are a sample of, where it is quickly computed."""
        law, joint = self._on_table
        return population_bound(law, self._design.sealed.promise, joint, AT_A_GLANCE)

    @cached_property
    def table_leak(self) -> float:
        """What a record leaks to whoever knows the table's exact frequencies, in exact arithmetic."""
        law, joint = self._on_table
        return exact_worst_leak(law, self._design.sealed.promise.table_promise, joint).leak.epsilon

    @property
    def _on_table(self) -> tuple[Mechanism, Joint]:
        """The mechanism on the values that rows have, and the counts that it was made from or for."""
        design = self._design
        if design.fitted is None:
            return design.sealed.mechanism, design.joint
        joint, occurs = design.fitted.table_joint
        return design.sealed.mechanism.restrict_inputs(occurs), joint

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """A finding of another package, computed at its first call."""
        if name not in self._others:
            self._others[name] = compute()
        return cast(T, self._others[name])
