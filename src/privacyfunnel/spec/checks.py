"""Checks of a spec that concern several fields, and what its fields stand for."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.names import suggest_name
from privacyfunnel.spec.fields import MODEL, POPULATION_PRIOR, TABLE
from privacyfunnel.spec.kinds import ALL_COLUMNS

if TYPE_CHECKING:
    from privacyfunnel.tables.readers.table_files import TableSource

Spec = Any  # a ReleaseSpec, whose module imports this one


SYNTHETIC = "real-or-synthetic"


def check_promise(spec: Spec) -> None:
    """One ε, given once; an average alone has none."""
    if spec.factor is not None and spec.epsilon is not None:
        raise ParameterError(
            f"{hint('factor')} and {hint('epsilon')} say the same thing; both were given. Give one of them."
        )
    if spec.average_only and (spec.average is None or spec.epsilon is not None or spec.factor is not None):
        raise ParameterError(
            f"{hint('average_only')} needs {hint('average')} and no {hint('epsilon')}. Leave out "
            f"{hint('average_only')} to keep both."
        )
    alone = "average" if spec.average is not None else "known" if spec.known else ""
    if alone and getattr(spec.secret, "sizes", None) is not None:
        raise ParameterError(
            f"{hint(alone)} is about one secret; several were given, each by itself. Leave it out, "
            f"or make them one secret with a comma: {hint('secret', ','.join(spec.secret))}."
        )
    if isinstance(spec.promise, str):
        from privacyfunnel.model.promises import find_promise, fixes_epsilon

        given = spec.epsilon is not None or spec.factor is not None or spec.average_only
        own = ":" in spec.promise and not given and fixes_epsilon(spec.promise)
        promise = find_promise(spec.promise, None if own else 1.0)
        merged = {value for labels in spec.merge_secrets.values() for value in labels}
        if merged and merged & set(promise.labels):
            raise ParameterError(
                f"{hint('merge_secrets')} merges a value that {spec.promise} names. Name the merged value there."
            )
    elif spec.epsilon is not None or spec.factor is not None:
        raise ParameterError(f"{spec.promise} already fixes ε; drop {hint('epsilon')}.")


def check_prior(spec: Spec) -> None:
    """One prior; what a published model has no room for is refused at once where it was named."""
    if spec.prior == MODEL and spec.population is not None:
        raise ParameterError(
            f"{hint('prior', MODEL)} and {hint('population')} name two priors. Leave one of them out, or use "
            f"{hint('prior', POPULATION_PRIOR)} with {hint('domain', 'domain.json')}."
        )
    if spec.prior == TABLE and spec.design_epsilon is not None:
        raise ParameterError(
            f"{hint('prior', TABLE)} makes the mechanism from the counts themselves, {hint('design_epsilon')} from "
            f"counts with noise. Leave one of them out, or use {hint('prior', MODEL)}."
        )
    if spec.prior == MODEL:
        check_model(spec)


def check_model(spec: Spec) -> None:
    """What a published model, the default prior, has no room for."""
    if not spec.publishes_model:
        return
    refused = {
        "with_shares": (spec.with_shares, "a published model states its rows through noise alone; these are exact"),
        "sees_secret": (spec.sees_secret, "the mechanism of a published model reads only what is published"),
        "keep": (bool(spec.keep), "no ε would cover a column that is published as it is; publish it randomised"),
        "keep_order": (spec.keep_order, "the order of the table may say anything, and no ε would cover it"),
        "average_only": (spec.average_only, "an average alone has no ε that model and records could share"),
    }
    default = "" if spec.prior == MODEL else ", the default"
    for name, (given, why) in refused.items():
        if given:
            raise ParameterError(
                f"{hint(name)} does not go with {hint('prior', MODEL)}{default}: {why}. Leave it out, or use "
                f"{hint('prior', TABLE)}, whose mechanism is for your eyes only."
            )
    by_counts = [each.column for each in spec.bin_rules if each.quantiles]
    if by_counts:
        raise ParameterError(
            f"Quantiles of '{by_counts[0]}' are exact figures of the table; a published model needs edges that are "
            f"public. Give some, such as {hint('bins', f'{by_counts[0]}=0,10,20')}, or use {hint('prior', TABLE)}, "
            "whose mechanism is for your eyes only."
        )


def check_population(spec: Spec) -> None:
    """A promise for a population by counts with noise needs labels that were fixed before the sample was seen."""
    if spec.publishes_model or spec.prior == TABLE or (spec.domain is not None and not spec.population_if_possible):
        return
    raise ParameterError(
        f"{hint('prior', POPULATION_PRIOR)} must take labels and bins from a domain file, not from the table, and adds "
        f"noise to its counts. Draft one with scan, edit it, and name it ({hint('domain', 'domain.json')}), with a "
        f"confidence; or use {hint('prior', TABLE)}, whose mechanism is for your eyes only."
    )


def check_composable(spec: Spec) -> None:
    """Releases add up by a mechanism that reads what is published, about one secret at one prior."""
    why = "it is for one secret at one prior, with a mechanism that reads what is published alone"
    others = {
        "robust": spec.robust is not None,
        "known": bool(spec.known),
        "population": spec.population is not None or spec.prior == POPULATION_PRIOR,
        "sees_secret": spec.sees_secret,
        "average_only": spec.average_only,
        "secret": getattr(spec.secret, "sizes", None) is not None,
        "method": spec.method not in ("auto", "optimal", "randomised-response"),
    }
    if spec.composable is not None:
        refuse_beside("composable", {name: (given, why) for name, given in others.items()})


def refuse_beside(field: str, others: Mapping[str, tuple[bool, str]]) -> None:
    """Refuse the first of some fields that is given beside one with which it does not go, and say why."""
    for name, (given, why) in others.items():
        if given:
            raise ParameterError(f"{hint(field)} does not go with {hint(name)}: {why}. Leave one of them out.")


def check_after(spec: Spec) -> None:
    """A release after another has the model, labels and promise of that one."""
    if spec.after is None:
        return
    fixed = ("robust", "composable", "known", "average", "population", "design_epsilon", "domain", "merge_rare")
    others = {name: getattr(spec, name) not in (None, ()) for name in (*fixed, "public_labels", "zeros", "keep")}
    others |= {"prior": spec.prior not in (None, MODEL), "method": spec.method not in ("auto", "optimal")}
    others |= {name: getattr(spec, name) for name in ("sees_secret", "keep_order", "with_shares")}
    for name, given in others.items():
        if given:
            raise ParameterError(
                f"{hint('after')} takes model, labels and promise from the earlier release, and {hint(name)} would be "
                f"another. Leave {hint(name)} out, or make a release of its own."
            )


def check_robust(spec: Spec) -> None:
    """Other odds are covered around one prior, by a mechanism that reads what is published, for every record."""
    if spec.known:
        unpublished = [name for name in spec.known if spec.publish and name not in spec.publish]
        if unpublished:
            raise ColumnError(
                f"{hint('known')} names column '{unpublished[0]}', which is not published. Publish it, or leave it out."
            )
        if not spec.publishes_model or spec.method not in (None, "auto", SYNTHETIC):
            raise ParameterError(
                f"{hint('known')} is for real or synthetic records under a published model; something else was asked "
                f"for. Leave that out, or {hint('known')}."
            )
    if spec.robust is None:
        return
    others = {
        "population": (spec.population is not None, "a population is a set of priors of its own"),
        "prior": (spec.prior == POPULATION_PRIOR, "a population is a set of priors of its own"),
        "sees_secret": (spec.sees_secret, "the mechanism must read only what is published"),
        "keep": (bool(spec.judged_columns), "kept columns are judged for one prior"),
        "average_only": (spec.average_only, "an average alone promises nothing about a record"),
        "secret": (getattr(spec.secret, "sizes", None) is not None, "odds are covered for one secret, not for several"),
    }
    refuse_beside("robust", others)


def check_private(spec: Spec) -> None:
    """A domain file is for counts with noise, and says all there is to say of labels and bins."""
    if spec.public_labels:
        strange = [name for name in spec.public_labels if name not in (*spec.secret, *spec.publish)]
        if strange and spec.publish:
            raise ColumnError(
                f"{hint('public_labels')} names column '{strange[0]}', which is neither secret nor published. Publish "
                "it, or leave it out there."
            )
        others = {
            "domain": (spec.domain is not None, "a domain file lists the public labels of every column"),
            "prior": (not spec.publishes_model, "only a published model finds labels through noise"),
            "merge_rare": (spec.merge_rare is not None, "it merges what would be named"),
        }
        refuse_beside("public_labels", others)
    for name in ("zeros", "model_table"):
        elsewhere = not spec.publishes_model or spec.method not in (None, "auto", SYNTHETIC)
        if getattr(spec, name) is not None and elsewhere:
            raise ParameterError(
                f"{hint(name)} is for real or synthetic records under a published model; something else was asked for. "
                f"Use {hint('prior', MODEL)} and {hint('method', 'auto')}, or leave it out."
            )
    if spec.model_table is not None and (spec.domain is None or spec.design_epsilon is None):
        raise ParameterError(
            f"{hint('model_table')} needs the labels of all columns ({hint('domain', 'domain.json')}) and the ε with "
            f"which that table was made ({hint('design_epsilon', 0.2)}); one of them is missing. Name both."
        )
    if spec.domain is None:
        return
    if not spec.is_private_design:
        raise ParameterError(
            "A domain file is for a mechanism made from counts with noise; none was asked for. Use "
            f"{hint('prior', MODEL)}, or leave out {hint('domain')}."
        )
    if spec.with_shares:
        raise ParameterError(
            "A private design states its rows through noise alone; exact shares would undo that. Leave out "
            f"{hint('with_shares')}, or use {hint('prior', TABLE)} without {hint('domain')}."
        )
    if spec.bins:
        raise ParameterError(
            f"Bins of '{next(iter(spec.bins))}' must stand in the domain file. Leave out {hint('bins')}."
        )
    if spec.merge_rare is not None or spec.merge_secrets:
        raise ParameterError(
            "Values cannot be merged where a domain file lists them. Merge them in the table and list the merged "
            "values in the domain file."
        )


def check_kept(spec: Spec) -> None:
    """Kept columns are judged on the counts of the table, record by record."""
    if not spec.judged_columns:
        return
    others = (
        ("prior", spec.prior == POPULATION_PRIOR, "for a population they are not judged"),
        ("population", spec.population not in (None, "auto"), "for a population they are not judged"),
        ("average", spec.average is not None, "an average is about what is published alone"),
    )
    for name, requested, why in others:
        if requested:
            raise ParameterError(
                f"Kept columns are judged together with what is published, on the counts of the table; {why}. Publish "
                f"{', '.join(spec.keep)} with {hint('publish')}, leave out {hint('keep')} or {hint(name)}, or keep "
                f"them unjudged: {hint('accept_kept')}."
            )


def check_key(spec: Spec) -> None:
    """A kept key needs row ids, and no seed."""
    if spec.key_file is not None and spec.row_id is None:
        raise ParameterError(
            f"{hint('key_file')} needs {hint('row_id')}: a draw that follows from a row's position would be shared "
            "with whoever is at that position next time. Name the column that identifies rows."
        )
    if spec.key_file is not None and spec.seed is not None:
        raise ParameterError(
            f"Rows are drawn from {hint('key_file')} or from {hint('seed')}; both were given. Leave one out."
        )


def check_used_columns(spec: Spec, used: Collection[str]) -> None:
    """Refuse a row id, or a column to keep, that is secret or published."""
    if spec.row_id in used:
        raise ColumnError(
            f"column '{spec.row_id}' cannot identify rows and be secret or published too. Name a column of its own."
        )
    for name in spec.keep:
        if name in used:
            raise ColumnError(f"column '{name}' cannot be kept as it is and be secret or published too. Name it once.")


def check_columns_exist(spec: Spec, columns: Sequence[str]) -> None:
    """Refuse a spec that names a column the table does not have, and one whose rule concerns a column it leaves out."""
    used = {"secret": spec.secret, "publish": spec.publish, "keep": spec.keep}
    for field in ("row_id", "person", "counts"):
        used[field] = () if getattr(spec, field) is None else (getattr(spec, field),)
    merged = spec.merge_rare if isinstance(spec.merge_rare, Mapping) else {}
    rules = {"bins": spec.bins, "ordered": spec.ordered, "public_labels": spec.public_labels}
    rules["merge_rare"] = [column for column in merged if column != ALL_COLUMNS]
    for field, names in (used | rules).items():
        for name in names:
            if name not in columns:
                raise ColumnError(
                    f"{hint(field)} names column '{name}'; the table has none among {len(columns)}."
                    f"{suggest_name(name, columns)}"
                )
    for field, names in rules.items():
        for name in names:
            if name not in (*spec.secret, *spec.publish):
                raise ColumnError(
                    f"{hint(field)} names column '{name}', which is neither secret nor published. Publish it, or leave "
                    "out its rule."
                )


def epsilon_of_factor(factor: float) -> float:
    """ε of a factor, rounded down: e^ε is at most the factor.

    >>> epsilon_of_factor(1.0), 0.6931 < epsilon_of_factor(2.0) < 0.6932
    (0.0, True)
    """
    return math.floor(math.log(factor) * (1 - 1e-15) * 10**12) / 10**12  # a logarithm may be rounded up by half a unit


def find_source(table: Any, query: str | None = None) -> TableSource:
    """Where the rows come from: a file, or a query on a database."""
    from privacyfunnel.tables.databases.drivers import is_server_address
    from privacyfunnel.tables.databases.query import FILES, Query
    from privacyfunnel.tables.readers.table_files import FileSource, TableSource

    if isinstance(table, TableSource):
        return table
    if table is None:
        raise ParameterError(f"A release needs a table; none was given. Name one: {hint('table', 'people.csv')}.")
    name = str(table)
    if query is not None:
        return Query(name, query)
    if is_server_address(name) or name.lower().endswith(FILES):
        raise ParameterError(
            f"A database holds many tables; the rows must be named. Add {hint('query', 'select … from …')}."
        )
    return FileSource(Path(name))


# Of every spec, as it is made.
CHECKS = (check_promise, check_prior, check_composable, check_after, check_robust, check_private, check_kept, check_key)
