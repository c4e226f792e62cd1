"""The stored records, and the records that the program makes now."""

import json
import shutil
import tempfile
from pathlib import Path

from privacyfunnel import SealedProtocol
from tests.golden.cases import CASES
from tests.golden.record import Record, record_case, record_command
from tests.golden.tables import write_tables

HERE = Path(__file__).parent
STORED = HERE / "expected.json"
PROTOCOLS = {path.stem: path for path in sorted((HERE / "protocols").glob("*.json"))}
KINDS = ("cases", "protocols")

# What is done with every protocol file: on the same integers, whatever chose them, everything is the same again.
WITH_A_PROTOCOL = (
    "audit protocol.json people.csv",
    "apply protocol.json people.csv --into drawn.csv --seed 3",
    "estimate protocol.json drawn.csv",
)


def read_records() -> dict[str, dict[str, Record]]:
    """The stored records by kind and name."""
    content: dict[str, dict[str, Record]] = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    return {kind: content.get(kind, {}) for kind in KINDS}


def write_records(records: dict[str, dict[str, Record]]) -> None:
    """Store records, a line for each quantity."""
    kinds = [f" {json.dumps(kind)}: {{\n{_written(records[kind])}\n }}" for kind in KINDS]
    STORED.write_text("{\n" + ",\n".join(kinds) + "\n}\n", encoding="utf-8")


def _written(records: dict[str, Record]) -> str:
    return ",\n".join(f"  {json.dumps(name)}: {{\n{_lines(record)}\n  }}" for name, record in records.items())


def _lines(record: Record) -> str:
    return ",\n".join(f"   {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in record.items())


def record_named_case(name: str) -> Record:
    """The record of a case, made now."""
    case = next(case for case in CASES if case.name == name)
    with tempfile.TemporaryDirectory() as folder:
        return record_case(case, Path(folder))


def record_protocol(name: str) -> Record:
    """What is read from a stored protocol file, checked with it, drawn with it and estimated from that, now."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_tables(folder)
        shutil.copyfile(PROTOCOLS[name], folder / "protocol.json")
        loaded = SealedProtocol.load(folder / "protocol.json")
        record: Record = {
            "loaded promise": loaded.promise.epsilon,
            "loaded certificate": loaded.epsilon,
            "loaded to see the secret": loaded.sees_secret,
        }
        for words in WITH_A_PROTOCOL:
            command = words.split()
            found = record_command(command, folder, solved=False)
            record |= {f"{command[0]} {key}": value for key, value in found.items()}
    return record
