"""Small random tables in which much of the secret shows: few secrets, few values, rare ones among them."""

from dataclasses import dataclass

import numpy as np
import polars as pl

Generator = np.random.Generator

SECRETS = ("healthy enough", "ill at present", "under observation")
VALUES = ("value number one", "value number two", "value number three", "value number four")
RARE = ("a rare value, first", "a rare value, second")  # so few rows have them that they are merged on request


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a secret s, published columns x, z and n, a group that follows the secret, a hint that goes a little
    with it, a column k that says nothing about the rest, and ids."""

    rows: pl.DataFrame

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def sort_by_secret(self) -> "Table":
        """The same rows, sorted so that their place tells their secret, and their k, which says nothing about it."""
        rows = self.rows.sort("s", "k", maintain_order=True)
        return Table(pl.DataFrame({name: rows[name].to_list() for name in rows.columns}))  # its bytes are in this order

    def column(self, name: str) -> list[str]:
        """The entries of a column as text."""
        return list(self.rows[name].cast(pl.String))


def draw_table(rng: Generator, size: int, *, secrets: int | None = None, rare: bool = True) -> Table:
    """A random table of about so many rows, in random order."""
    c = secrets or int(rng.integers(2, 4))
    a = int(rng.integers(c, 5))
    chances = rng.dirichlet(np.full(a, 0.6), size=c) * 0.4 + np.eye(c, a)[rng.permutation(c)] * 0.6
    chances *= rng.dirichlet(np.full(c, 8.0))[:, None]
    z_given = 0.2 + 0.6 * rng.random((c, a))
    cells = []
    for s in range(c):
        for x in range(a):
            for z in range(2):
                share = chances[s, x] * (z_given[s, x] if z else 1 - z_given[s, x])
                cells.append((SECRETS[s], VALUES[x], z, x, max(1, round(share * size / 2))))
    if rare:
        cells += [(SECRETS[i], RARE[i], 0, i, 2) for i in range(2)]
    parts = []
    for s_name, x_name, z, number, pairs in cells:
        n = 2 * pairs
        parts.append(
            pl.DataFrame(
                {
                    "s": [s_name] * n,
                    "x": [x_name] * n,
                    "z": ["high" if z else "low"] * n,
                    "n": number * 10 + rng.integers(0, 10, n),
                    "group": ["infectious" if s_name == SECRETS[1] else "not infectious"] * n,
                    "hint": [str(i % (10 if s_name == SECRETS[0] else 9) < 5) for i in range(n)],
                    "k": ["north of the river", "south of the river"] * pairs,
                }
            )
        )
    rows = pl.concat(parts)
    rows = rows[rng.permutation(len(rows))]
    return Table(rows.with_columns(id=pl.Series(rng.permutation(len(rows)) + 10_000)))
