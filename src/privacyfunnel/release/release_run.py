"""A table on its way out: counted, sealed, drawn, and put into a random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.promises import SRLIP
from privacyfunnel.release.design import DesignResult, count_table, design_from_counts
from privacyfunnel.release.findings.population import AT_A_GLANCE, population_bound
from privacyfunnel.release.findings.rare_values import rare_secret_advice, rare_value_advice
from privacyfunnel.release.findings.sparseness import sparseness_advice
from privacyfunnel.release.order import Order
from privacyfunnel.release.release import Release
from privacyfunnel.release.sending import ProgressCallback

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.tables.coding.encoding import Encoding


class ReleaseRun:
    """A table on its way out: counted and sealed, and then drawn batch by batch."""

    def __init__(self, order: Order, found: DesignResult, outgoing: RowSampler, watch: ProgressCallback | None) -> None:
        self._order, self._found, self._watch = order, found, watch
        self.outgoing = outgoing

    @classmethod
    def start(cls, table: Any, order: Order, watch: ProgressCallback | None = None) -> ReleaseRun:
        """Count the table, make the protocol and seal it; nothing is published yet."""
        from privacyfunnel.names import validate_columns

        validate_columns(order.keep, table.columns, "kept")
        if watch:
            watch("counting", 0)
        encoding = count_table(table, order)
        return cls.from_design(encoding, order, design_from_counts(encoding.contingency, order), watch)

    @classmethod
    def from_design(
        cls, encoding: Encoding, order: Order, found: DesignResult, watch: ProgressCallback | None = None
    ) -> ReleaseRun:
        """A table for which the protocol was designed."""
        from privacyfunnel.release.bound_table import BoundTable
        from privacyfunnel.release.row_sampler import RowSampler

        met = BoundTable(found.sealed, encoding, True)
        return cls(order, found, RowSampler(met, order.sending, watch), watch)

    @property
    def encoding(self) -> Encoding:
        return self.outgoing.bound_table.encoding

    @property
    def sealed(self) -> SealedProtocol:
        return self._found.sealed

    def codebook(self) -> pl.DataFrame | None:
        """What outcome codes stand for, where the table shows any."""
        from privacyfunnel.release.codebook import codebook

        return codebook(self.sealed, self._found.joint)

    def release(self, table: Any) -> Release:
        """What was done, once all batches were drawn."""
        encoding, order, found = self.encoding, self._order, self._found
        used = {*order.secret, *order.publish, *order.keep}
        law, joint = self.sealed.mechanism, found.joint
        return Release(
            table=table,
            sealed=self.sealed,
            method=found.choice.method,
            rows=encoding.rows,
            kept=order.keep,
            dropped=tuple(name for name in encoding.table.columns if name not in used),
            unchanged=self.outgoing.unchanged_share,
            unchanged_expected=self.outgoing.layout.expected_unchanged_share(joint),
            worth=found.worth,
            short=found.short,
            average=order.average,
            average_only=order.average_only,
            known_values_leak=SRLIP(0).leakage(joint, law.protocol) if law.sees_secret else None,
            seconds=found.seconds,
            reason=found.choice.reason,
            sparse="" if order.private else sparseness_advice(found, self._watch),
            rare=()
            if order.private
            else tuple(
                filter(
                    None, (rare_value_advice(joint, self.sealed.domain.bins), rare_secret_advice(found, order.secret))
                )
            ),
            joint=joint,
            not_for_people=found.not_for_people,
            rows_alone=found.rows_alone,
            people=population_bound(law, self.sealed.promise, joint, AT_A_GLANCE),
            known=() if found.point is None else (found.point,),
            order_tells=self.outgoing.measure_row_order(),
            kept_columns=self.outgoing.kept_columns(),
            kept_order=order.keep_order,
        )
