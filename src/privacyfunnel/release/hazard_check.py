"""The guard before a release: columns that point to persons leave only with the owner's word."""

from __future__ import annotations

from typing import Any

from privacyfunnel.errors import ColumnError
from privacyfunnel.hints import hint
from privacyfunnel.names import validate_roles
from privacyfunnel.spec import ReleaseSpec


def check_hazards(table: Any, spec: ReleaseSpec) -> tuple[str, ...]:
    """Refuse the first column that needs the owner's word and did not get it; sentences about everything else."""
    from privacyfunnel.tables.readers.column_hazards import PERSONS, find_hazards

    validate_roles(spec.secret, spec.publish, table.columns)
    coarser = {rule.column for rule in spec.bin_rules} | {rule.column for rule in spec.merges}
    publish = [] if None in coarser else [column for column in spec.publish if column not in coarser]
    found = find_hazards(table, secret=spec.secret, publish=publish, used=(*spec.publish, *spec.keep))
    refused = [hazard for hazard in found if hazard.blocks and hazard.column not in spec.allow]
    if refused:
        more = f" {len(refused) - 1} more columns need such a decision." if len(refused) > 1 else ""
        raise ColumnError(f"{refused[0].sentence} {hint('allow', refused[0].column)} publishes it as it is.{more}")
    return tuple(
        hazard.sentence for hazard in found if not hazard.blocks and not (spec.person and hazard.kind == PERSONS)
    )
