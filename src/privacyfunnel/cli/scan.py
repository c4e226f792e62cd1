"""`scan`: what every column would say about the secret."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from privacyfunnel.cli import words
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.options import (
    BinOption,
    Delimiter,
    Encoding,
    Epsilon,
    PromiseName,
    PromiseOption,
    Secret,
    Table,
    listed,
)

if TYPE_CHECKING:
    from privacyfunnel.audits.scan import Look


def scan(
    table: Table,
    *,
    secret: Secret,
    epsilon: Epsilon = 1.0,
    promise: PromiseOption = PromiseName.LIP,
    bin_: BinOption = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Look at every other column: what would it say about the secret if it were published as it is?"""
    from privacyfunnel.audits import scan as room
    from privacyfunnel.model.promises import promise as promise_called
    from privacyfunnel.tables.bins import parse_bin

    wanted = promise_called(promise.value, epsilon)
    found = room.scan(
        table,
        secret=listed(secret),
        bins=tuple(map(parse_bin, bin_ or [])),
        delimiter=delimiter,
        encoding=encoding,
    )
    columns = [{**asdict(look), "safe": found.safe(look, wanted)} for look in found.looks]
    content = {
        "rows": found.rows,
        "secret": found.secret,
        "secrets": found.secrets,
        "secret_entropy": found.secret_entropy,
        "promise": wanted.name,
        "epsilon": wanted.epsilon,
        "columns": columns,
    }
    safe = [look.column for look in found.looks if found.safe(look, wanted)]
    name = " & ".join(found.secret)
    told = [
        f"{found.rows:,} rows. What each column says about {name} ({found.secrets} values) if published as it is:",
        "",
        words.table(
            ["", "column", "values", "LIP ε", "LDP ε", "I(S;X)", "of H(S)", "says most"],
            [_line(look, found.safe(look, wanted), found.secret_entropy) for look in found.looks],
            "<<>>>>><",
        ),
        "",
        f"Safe as they are at {wanted.name} ε = {words.epsilon(wanted.epsilon)}: {', '.join(safe) or 'none'}.",
        "ε is the worst case; I(S;X), in nats, is the average. A value that rules out a secret has no finite ε.",
    ]
    answer(as_json, content, "\n".join(told))


def _line(look: Look, safe: bool, whole: float) -> list[str]:
    if look.note:
        return ["", look.column, "", "", "", "", "", look.note]
    unbounded = math.isinf(look.lip)
    worst = f"{look.value} {'rules out' if unbounded else 'about'} {look.secret}"
    return [
        "safe" if safe else "",
        look.column,
        f"{look.values}{' bins' if look.binned else ''}",
        words.epsilon(look.lip),
        words.epsilon(look.ldp),
        f"{look.information or 0:.4f}",
        words.share(look.information or 0, whole),
        worst,
    ]
