"""`keygen` and `sign`: the owner vouches for the files of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.spec_options import Force


def keygen(
    key: Annotated[Path, typer.Argument(readable=False, help="A file for the private key, for its owner alone.")],
    *,
    rows: Annotated[
        bool, typer.Option("--rows", help="Make a key for --key-file instead, by which unchanged rows are drawn alike.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make an Ed25519 key pair to sign releases with: the private key, and beside it NAME.public.pem for everybody."""
    from privacyfunnel.atomic_files import check_target

    check_target(key, force=False)
    if rows:
        from privacyfunnel.mechanisms.sampling import RowKey

        RowKey.generate().save(key)
        answer(
            as_json, {"key": str(key)}, text_format.format_facts([("key", f"{key}: keep it, and give it to nobody")])
        )
        return
    from privacyfunnel.mechanisms.signatures import generate_key

    public = key.with_name(f"{key.name.removesuffix('.pem')}.public.pem")
    mark = generate_key(key, public)
    text = text_format.format_facts(
        [("private key", f"{key}: keep it, and give it to nobody"), ("public key", str(public)), ("fingerprint", mark)]
    )
    answer(as_json, {"private": str(key), "public": str(public), "fingerprint": mark}, text)


def sign(
    protocol: Annotated[Path, typer.Argument(readable=False, help="The protocol.json of a release.")],
    sanitised: Annotated[Path, typer.Argument(readable=False, help="The sanitised table of the same release.")],
    *,
    key: Annotated[Path, typer.Option("--key", readable=False, help="The owner's private key, made with keygen.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Sign the protocol and the table of a release; audit and estimate verify it with --signed-by."""
    from privacyfunnel.mechanisms.protocol_file import find_protocol
    from privacyfunnel.mechanisms.signatures import fingerprint, load_private_key
    from privacyfunnel.mechanisms.signatures import sign as sign_files
    from privacyfunnel.tables.readers.table_files import find_table

    mine = load_private_key(key)
    path = sign_files(find_protocol(protocol), find_table(sanitised), mine, force=force)
    mark = fingerprint(mine.public_key())
    text = text_format.format_facts([("signature", str(path)), ("signed by", mark)])
    answer(as_json, {"signature": str(path), "signed_by": mark}, text)
