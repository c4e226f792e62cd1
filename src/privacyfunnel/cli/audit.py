"""`audit`: the promise checked again from the files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privacyfunnel.cli import words
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.options import BinOption, Delimiter, Encoding, Table, listed


def audit(
    protocol: Annotated[Path, typer.Argument(readable=False, help="The protocol.json that sanitise wrote.")],
    table: Table,
    *,
    secret: Annotated[
        list[str] | None, typer.Option("--secret", "-s", help="The secret column, if you want it checked by name.")
    ] = None,
    sanitised: Annotated[
        Path | None, typer.Option("--sanitised", help="The sanitised table: test that it was drawn from the protocol.")
    ] = None,
    bin_: BinOption = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Check from the files alone that the promise holds and that the sanitised table was drawn as stated."""
    from privacyfunnel import audit as room
    from privacyfunnel.tables.bins import parse_bin

    found = room.audit(
        protocol,
        table,
        secret=listed(secret),
        sanitised=sanitised,
        bins=tuple(map(parse_bin, bin_ or [])),
        delimiter=delimiter,
        encoding=encoding,
    )
    sealed, draw = found.sealed, found.draw
    content = {
        "holds": True,
        "rows": found.rows,
        "promise": sealed.promise.name,
        "epsilon": sealed.promise.epsilon,
        "stated": sealed.epsilon,
        "certified": found.certified,
        "for_publication": sealed.for_publication,
        "draw": None
        if draw is None
        else {
            "consistent": True,
            "chi_square": draw.statistic,
            "degrees": draw.degrees,
            "p_value": draw.p_value,
            "false_alarm": room.FALSE_ALARM,
        },
    }
    told = [
        ("rows", f"{found.rows:,}"),
        ("promise", f"{sealed.promise.name} ε = {words.epsilon(sealed.promise.epsilon)} holds"),
        ("certified", f"ε = {found.certified:.6g} now, {sealed.epsilon:.6g} stated, in exact arithmetic"),
    ]
    if draw is not None:
        told.append(
            (
                "draw",
                f"consistent: chi-square {draw.statistic:.1f} on {draw.degrees} degrees of freedom, "
                f"p = {draw.p_value:.3f} (a true draw is called false once in {1 / room.FALSE_ALARM:,.0f} audits)",
            )
        )
    if not sealed.for_publication:
        told.append(("beware", "drawn from a seed: not for publication"))
    answer(as_json, content, words.facts(told))
