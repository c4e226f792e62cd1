"""ReleaseSpec: everything that the owner asks of a release, checked when it is made.

The command line, release.toml, the studio, Spark and Python build the same value. Options, help, the documentation's
table and the JSON Schema are generated from the descriptions of its fields.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.spec.checks import (
    CHECKS,
    check_model,
    check_population,
    check_used_columns,
    epsilon_of_factor,
    find_source,
)
from privacyfunnel.spec.fields import (
    ERROR,
    MODEL,
    OUTCOMES,
    POPULATION_PRIOR,
    PRESETS,
    TABLE,
    VALUES,
    SpecField,
    describe_fields,
)
from privacyfunnel.spec.kinds import ALL_COLUMNS, AUTO

if TYPE_CHECKING:
    from privacyfunnel.designs.interface import Options, Progress
    from privacyfunnel.mechanisms.sampling import RowKey
    from privacyfunnel.model.joint import Joint
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.model.uses.ordinal_scale import Orders
    from privacyfunnel.model.uses.use import Use
    from privacyfunnel.tables.coding.bins import Bins
    from privacyfunnel.tables.coding.domain_file import DomainFile
    from privacyfunnel.tables.coding.merges import Merge
    from privacyfunnel.tables.readers.formats import Dialect
    from privacyfunnel.tables.readers.table_files import TableSource

CONFIDENCE = 0.95  # of population="auto"
GAP = 1e-6  # nats
DEFAULT_FACTOR = 2.0  # of a promise whose size was not given

Names: TypeAlias = Any  # one name or several; stored as a tuple of texts


@dataclass(frozen=True, kw_only=True)
class ReleaseSpec:
    """What the owner asks of a release: columns, promise, use, coarser values, how rows are read and written.

    >>> spec = ReleaseSpec(secret="illness", publish=["town", "age"], epsilon=1, bins={"age": [0, 18, 65]})
    >>> spec.secret, spec.publish, spec.promise_value
    (('illness',), ('town', 'age'), LIP(epsilon=1.0))
    >>> replace(spec, epsilon=0.5).epsilon
    0.5
    >>> ReleaseSpec(merge_rare=1)
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: merge_rare must be at least 2; got 1.
    """

    secret: Names = ()
    publish: Names = ()
    keep: Names = ()
    allow: Names = ()

    for_whom: str | None = None
    epsilon: float | None = None
    factor: float | None = None
    promise: str | Promise = "lip"
    prior: str | None = None
    population: float | str | None = None
    robust: float | str | None = None
    composable: float | None = None
    known: Names = ()
    after: Any = None
    average: float | None = None
    average_only: bool = False
    sees_secret: bool = False

    use: str | Use | None = None
    ordered: Mapping[str, Any] = field(default_factory=dict)
    method: str = "auto"
    gap: float = GAP
    time_limit: float | None = None

    bins: Any = field(default_factory=dict)
    merge_rare: Any = None
    merge_secrets: Mapping[str, Any] = field(default_factory=dict)

    as_: str = OUTCOMES
    accept_kept: bool = False
    keep_order: bool = False
    with_shares: bool = False
    row_id: str | None = None
    key_file: Any = None
    seed: int | None = None
    unknown: str = ERROR
    accept_drift: bool = False

    design_epsilon: float | str | None = None
    domain: Any = None
    public_labels: Names = ()
    zeros: Any = None
    model_table: Any = None
    design_noise: str = "own"

    table: Any = None
    query: str | None = None
    counts: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    na: Names = ()
    sheet: str | None = None
    header_row: int | None = None
    person: str | None = None
    person_row: str | None = None

    approved_by: str | None = None
    purpose: str | None = None
    contact: str | None = None
    valid_until: str | None = None

    into: Path | None = None
    into_table: str | None = None
    parts: int | None = None
    format: str | None = None
    excel_safe: bool = False
    report: bool = True
    sign: Path | None = None
    signed_by: Path | None = None
    ledger: Path | None = None
    try_: bool = False
    anyway: bool = False
    again: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        for each in FIELDS:
            value = getattr(self, each.name)
            if value != each.default:
                object.__setattr__(self, each.name, each.option.kind.check(each.name, value))
        for name, value in PRESETS.get(self.for_whom or "", {}).items():
            if getattr(self, name) == next(each.default for each in FIELDS if each.name == name):
                object.__setattr__(self, name, value)
        for check in CHECKS:
            check(self)
        check_used_columns(self, (*self.secret, *self.publish))
        for _ in (self.use_value, self.bin_rules, self.merges):  # each reads its texts, or refuses them
            pass

    # What other packages take

    def require_columns(self) -> Self:
        """The spec itself, where it names what a design needs; else a refusal."""
        for role, columns in (("secret", self.secret), ("published", self.publish)):
            if not columns and self.after is None:
                raise ColumnError(f"at least one {role} column must be named; none was. Name one.")
        _ = self.promise_value, self.row_key  # each is refused before anything is read
        check_model(self)
        check_population(self)
        return self

    def require_into(self) -> Path:
        """Where the output goes; refused where nobody said."""
        if self.into is None:
            raise ParameterError(f"The output needs a place; none was given. Add {hint('into', 'out')}.")
        return self.into

    def refuse_used(self, columns: Collection[str]) -> None:
        """Refuse a row id, or a column to keep, that a protocol uses."""
        check_used_columns(self, columns)

    @cached_property
    def promise_value(self) -> Promise:
        """The promise with its ε; for an average alone the largest ε, and the one that results is stated."""
        from privacyfunnel.model.promises import ComposablePromise, RobustPromise

        plain = self._plain_promise
        if self.composable is not None:
            return ComposablePromise(plain, self.composable)
        if self.robust is not None:
            from privacyfunnel.model.credal.events import OddsRange

            plain = RobustPromise(plain, OddsRange.parse(self.robust))
        if self.known:
            from privacyfunnel.model.neighbours import NeighbourPromise

            return NeighbourPromise(plain, self.known)
        return plain

    @property
    def _plain_promise(self) -> Promise:
        """The promise about the secret, or about each of several."""
        sizes = getattr(self.secret, "sizes", None)
        if sizes is None:
            return self._size_promise(None)
        from privacyfunnel.model.each_secret import Each

        return Each.of_columns(self._size_promise(max(sizes.values()) if all(sizes.values()) else None), sizes)

    def _size_promise(self, default: float | None) -> Promise:
        from privacyfunnel.model.promises import find_promise, fixes_epsilon

        if not isinstance(self.promise, str):
            return self.promise
        if ":" in self.promise and fixes_epsilon(self.promise):
            return find_promise(self.promise)
        if self.average_only:
            from privacyfunnel.designs.optimal.problem_conversion import LARGEST_EPSILON

            return find_promise(self.promise, LARGEST_EPSILON)
        epsilon = self.allowed_epsilon
        if epsilon is None and self.average is not None:
            raise ParameterError(
                f"A promise needs its ε; none was given. Add {hint('epsilon', 1)}. An average alone promises nothing "
                f"about the worst record; {hint('average_only')} with {hint('prior', 'table')} asks for just that."
            )
        default = epsilon_of_factor(DEFAULT_FACTOR) if default is None else default
        return find_promise(self.promise, default if epsilon is None else epsilon)

    def promise_for(self, joint: Joint) -> Promise:
        """The promise about this table, and about the population it is a sample of where that was asked for."""
        promise = self.promise_value
        if self.confidence is None:
            return promise
        by_counts = [] if self.merge_rare is None else [hint("merge_rare")]
        by_counts += [
            hint("bins", f"{each.column}=quantiles:{each.quantiles}") for each in self.bin_rules if each.quantiles
        ]
        if by_counts:  # credal sets hold for labels fixed beforehand (docs/theory.md, Theorem 44)
            raise ParameterError(
                "A promise for a population needs labels that do not depend on the counts; "
                f"{' and '.join(by_counts)} chooses them by the counts. Name edges or groups "
                f"({hint('bins', 'age=0,18,65')}), or leave out {hint('population')}."
            )
        return promise.for_population(joint, self.confidence)

    @property
    def confidence(self) -> float | None:
        """The confidence with which the promise is to hold for the population."""
        default = isinstance(self.population, str) or (self.population is None and self.prior == POPULATION_PRIOR)
        return CONFIDENCE if default else cast(float | None, self.population)

    @property
    def population_if_possible(self) -> bool:
        """Whether these rows alone are promised for where the population cannot be."""
        return self.population == AUTO

    @cached_property
    def use_value(self) -> Use | None:
        """What the table is to be best for; None where the method chooses."""
        if self.use is None:
            return None
        from privacyfunnel.model.uses.use_parser import resolve_use

        return resolve_use(self.use)

    @property
    def scales(self) -> Orders:
        """Columns with ordinal values that are no numbers."""
        return tuple(self.ordered.items()) or (() if self.use_value is None else self.use_value.orders)

    @cached_property
    def bin_rules(self) -> tuple[Bins, ...]:
        """The bins of each column that has some."""
        if not self.bins:
            return ()
        from privacyfunnel.tables.coding.bin_syntax import parse_bins

        return parse_bins(self.bins)

    @cached_property
    def merges(self) -> tuple[Merge, ...]:
        """The rules by which values are merged."""
        if self.merge_rare is None and not self.merge_secrets:
            return ()
        from privacyfunnel.tables.coding.merges import make_merges

        rare: Any = self.merge_rare
        if isinstance(rare, Mapping) and ALL_COLUMNS in rare:
            named = {column: fewest for column, fewest in rare.items() if column != ALL_COLUMNS}
            return (*make_merges(rare[ALL_COLUMNS]), *make_merges(named, self.merge_secrets))
        return make_merges(rare, self.merge_secrets)

    @property
    def counted_merges(self) -> tuple[Merge, ...]:
        """Those that are done before anything is counted: a model finds rare values through its noise."""
        return replace(self, merge_rare=None).merges if self.publishes_model else self.merges

    @property
    def of_secret(self) -> tuple[tuple[Bins, ...], tuple[Merge, ...]]:
        """The bins and merges of the secret alone."""
        bins = tuple(rule for rule in self.bin_rules if rule.column in self.secret)
        return bins, tuple(rule for rule in self.merges if any(rule.concerns(s, secret=True) for s in self.secret))

    @cached_property
    def row_key(self) -> RowKey | None:
        """The owner's key for draws by row id."""
        from privacyfunnel.mechanisms.sampling import RowKey

        found: RowKey | None = RowKey.load(self.key_file) if isinstance(self.key_file, str | Path) else self.key_file
        return found

    @cached_property
    def domain_file(self) -> DomainFile | None:
        """The public labels and bins of a private design."""
        from privacyfunnel.tables.coding.domain_file import read_domain

        named = isinstance(self.domain, str | Path)
        found: DomainFile | None = read_domain(Path(self.domain)) if named else self.domain
        return found

    @cached_property
    def impossible_combinations(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Pairs of a column and a value that nobody has together: those named, and those of published columns that the
        domain file lists."""
        from privacyfunnel.tables.coding.domain_file import read_zeros

        named = read_zeros(Path(self.zeros)) if isinstance(self.zeros, str | Path) else tuple(self.zeros or ())
        listed = () if self.domain is None or self.domain_file is None else self.domain_file.impossible
        return (*named, *(each for each in listed if {column for column, _ in each} <= {*self.publish}))

    @property
    def publishes_model(self) -> bool:
        """Whether the prior is a model that is published with the mechanism: the default."""
        return self.prior == MODEL or (self.prior is None and self.population is None)

    @property
    def is_private_design(self) -> bool:
        """Whether the mechanism is made from noisy counts and may be published."""
        return self.prior != TABLE

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns that are read besides those that are secret or published."""
        also = () if self.row_id is None or self.row_id in self.keep else (self.row_id,)
        return (*self.keep, *also)

    @property
    def allowed_epsilon(self) -> float | None:
        """The ε that was given, as such or as a factor."""
        return self.epsilon if self.factor is None else epsilon_of_factor(self.factor)

    @property
    def judged_columns(self) -> tuple[str, ...]:
        """The kept columns that the promise is about, together with what is published."""
        return () if self.accept_kept else tuple(self.keep)

    @property
    def dialect(self) -> Dialect:
        """How the text of the table is read."""
        from privacyfunnel.tables.readers.formats import Dialect

        return Dialect(
            self.delimiter,
            self.encoding,
            self.decimal,
            self.na,
            self.sheet,
            self.person,
            self.person_row,
            self.header_row,
        )

    @property
    def source(self) -> TableSource:
        """Where the rows come from: a file, or a query on a database."""
        return find_source(self.table, self.query)

    def options(self, progress: Progress | None = None) -> Options:
        """What a method is told."""
        from privacyfunnel.designs.interface import Effort, Options
        from privacyfunnel.model.uses.use import Information

        return Options(
            sees_secret=self.sees_secret,
            as_values=self.as_ == VALUES,
            use=self.use_value or Information(),
            orders=self.scales,
            average=self.average,
            average_only=self.average_only,
            effort=Effort(self.gap, self.time_limit, progress),
        )

    # Files

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> ReleaseSpec:
        """The spec with these values by field; refuses a name that no field has."""
        return cls(**known_values(content))

    @classmethod
    def from_toml(cls, path: str | Path) -> ReleaseSpec:
        """The spec in a release.toml. Paths in it are relative to its folder."""
        from privacyfunnel.spec.text_forms import read_toml

        return cls.from_mapping(read_toml(Path(path), FIELDS))

    def to_toml(self, folder: str | Path = ".") -> str:
        """The spec as a release.toml in that folder, each value after its help."""
        from privacyfunnel.spec.text_forms import format_toml

        return format_toml(self, Path(folder))


FIELDS: tuple[SpecField, ...] = tuple(describe_fields(ReleaseSpec))
BY_KEY: Mapping[str, SpecField] = {each.key: each for each in FIELDS}


def known_values(content: Mapping[str, Any]) -> dict[str, Any]:
    """The values by field, refused where a name is no field's.

    >>> known_values({"as": "values", "epsilon": 1})
    {'as_': 'values', 'epsilon': 1}
    """
    found = {}
    for key, value in content.items():
        if key.rstrip("_") not in BY_KEY:
            from privacyfunnel.names import suggest_name

            raise ParameterError(f"A spec has no field '{key}'.{suggest_name(key, tuple(BY_KEY))}")
        found[BY_KEY[key.rstrip("_")].name] = value
    return found


def parse_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values that options of the command line mean: texts by field, switches as truth values."""
    found = {}
    for each in FIELDS:
        texts = given.get(each.name)
        if texts is not None and texts != []:
            listed = [texts] if isinstance(texts, str) else texts
            found[each.name] = texts if each.is_flag else each.option.kind.parse(each.name, listed)
    return found


__all__ = ["FIELDS", "ReleaseSpec", "find_source", "known_values", "parse_options", "replace"]
