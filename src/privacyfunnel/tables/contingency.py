"""n(s, x): what is counted of a table."""

from dataclasses import dataclass

from privacyfunnel.arrays import IntArray
from privacyfunnel.tables.columns import Coding
from privacyfunnel.tables.names import joined_labels


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """One or several columns read as one: S, or X = (X¹, …, Xᵐ), with the combinations of values that it takes."""

    codings: tuple[Coding, ...]
    combos: IntArray  # k × m: the code in each coding, a row per combination, in lexicographic order

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(coding.column for coding in self.codings)

    @property
    def labels(self) -> tuple[str, ...]:
        """A label per combination, such as `Bachelors & Husband`, no two alike."""
        return joined_labels(
            [coding.labels[code] for coding, code in zip(self.codings, combo, strict=True)]
            for combo in self.combos.tolist()
        )


@dataclass(frozen=True, slots=True, eq=False)
class Contingency:
    """n(s, x): how many rows hold each secret (c of them) with each combination of published values (k of them)."""

    weights: IntArray  # c × k
    secret: Variable
    published: Variable

    @property
    def secret_labels(self) -> tuple[str, ...]:
        return self.secret.labels

    @property
    def attribute_names(self) -> tuple[str, ...]:
        return self.published.columns

    @property
    def attribute_labels(self) -> tuple[tuple[str, ...], ...]:
        return tuple(coding.labels for coding in self.published.codings)

    @property
    def combos(self) -> IntArray:
        return self.published.combos
