"""From what a command prints and writes to a flat record of quantities that do not depend on wording or layout.

The words of today's JSON stand in this module alone: where a key is renamed, its path here changes and nothing else. A
quantity is a number, a truth, a name or a list of these; two kinds are more: an objective (its value, the bound that
was proved, and whether less is better) and a certificate (what was certified of what was promised).
"""

import csv
import hashlib
import json
import math
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from privacyfunnel.cli import main
from tests.golden.cases import Case
from tests.golden.tables import write_tables

Record = dict[str, Any]
DIGITS = 8  # significant ones of a stored number

# Quantity: its path in the JSON. Those of the second dictionary depend on which of several optima a solver found, and
# those of the third on the draw.
RELEASE = {
    **{name: name for name in ("rows", "secret", "publish", "promise", "epsilon", "method", "use")},
    "sees secret": "sees_secret",
    "entropy": "entropy_nats",
}
RELEASE_MECHANISM = {
    "information": "information_nats",
    "expected unchanged": "unchanged_expected",
    "population epsilon": "people.epsilon",
    "rare below": "people.rare_below",
}
RELEASE_DRAW = {"unchanged": "unchanged", "for publication": "for_publication", "kept": "kept", "dropped": "dropped"}
PROTOCOL = {
    "kind": "kind",
    "promise": "promise.name",
    "sees secret": "sees_secret",
    "entropy": "certificate.entropy_nats",
    "confidence": "promise.population.confidence",
    "design": "promise.population.design.epsilon",
}
AUDIT = {
    "holds": "holds",
    "rows": "rows",
    "secret": "secret",
    "promise": "promise",
    "epsilon": "epsilon",
    "drawn as stated": "draw.consistent",
    "follows the secret": "draw.follows_secret.found",
}
AUDIT_MECHANISM = {
    "chi square": "draw.chi_square",
    "degrees": "draw.degrees",
    "p value": "draw.p_value",
    "population epsilon": "people.epsilon",
    "together": "together.epsilon",
    "alone": "together.alone",
    "lip": "leakage.lip",
    "ldp": "leakage.ldp",
    "srlip": "leakage.srlip",
    "information": "information_nats",
}
APPLY = {
    **{name: name for name in ("rows", "secret", "publish", "promise", "epsilon", "kept", "dropped")},
    "unknown": "unknown.rows",
}
APPLY_MECHANISM = {"on these rows": "on_these_rows.epsilon", "certified": "certified", "unchanged": "unchanged"}
SOLVE = {
    **{name: name for name in ("promise", "epsilon", "method", "use", "entropy")},
    "sees secret": "sees_secret",
}
SOLVE_MECHANISM = {
    "information": "utility",
    "lip": "leakage.lip",
    "ldp": "leakage.ldp",
    "srlip": "leakage.srlip",
    "outputs": "outputs",
}
SCAN = {"rows": "rows", "secrets": "secrets", "secret entropy": "secret_entropy", "order": "order.guessed"}
SCAN_COLUMN = ("values", "lip", "ldp", "information", "alone", "decided", "safe")
ESTIMATE = {"method": "method", "level": "level", "target": "target"}
CELL = ("share", "standard_error", "lower", "upper")


def record_case(case: Case, folder: Path) -> Record:
    """Run the commands of a case in an empty folder, and record what they found."""
    write_tables(folder)
    return {
        f"{number} {key}": value
        for number, words in enumerate(case.commands, 1)
        for key, value in record_command(shlex.split(words), folder, solved=case.solved).items()
    }


def record_command(words: list[str], folder: Path, *, solved: bool) -> Record:
    """Run a command in a folder, and record what it found."""
    code, printed = run_command(words, folder)
    record: Record = {"exit code": code}
    if code == 0:
        found = json.loads(printed)
        record.update(RECORDERS[words[0]](found, folder, solved, "--seed" in words))
    return {key: _canonical(value) for key, value in record.items() if value is not None}


def run_command(words: list[str], folder: Path) -> tuple[int, str]:
    """The exit code of a command that runs within this process and that folder, and the JSON that it prints."""
    before, out, err = Path.cwd(), StringIO(), StringIO()
    os.chdir(folder)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*words, "--json"])
    finally:
        os.chdir(before)
    return code, out.getvalue()


def _release(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    record = _picked(found, RELEASE)
    record["certificate"] = _certificate(found["certified"], found["epsilon"])
    record["objective"] = _objective(found["use"], found["value"], found["bound"])
    if not solved:
        record |= _picked(found, RELEASE_MECHANISM)
        record |= {f"error of {','.join(it['columns'])}": [it["average"], it["worst"]] for it in found["shares_within"]}
    if seeded and not solved:
        record |= _picked(found, RELEASE_DRAW) | _table(folder / found["table"])
    return record | _protocol(folder / found["protocol"], solved)


def _demo(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    """All that does not depend on the noise of its model, which is fresh every time."""
    return {name: value for name, value in _picked(found, RELEASE).items() if name != "entropy"}


def _protocol(path: Path, solved: bool) -> Record:
    content = json.loads(path.read_text(encoding="utf-8"))
    record = _picked(content, PROTOCOL)
    record["certificate"] = _certificate(content["certificate"]["epsilon"], content["promise"]["epsilon"])
    record["columns"] = [column["column"] for column in content["publish"]]
    record["labels"] = [label for column in content["publish"] for label in column["labels"]]
    record["combinations"] = len(content["combinations"] or ())
    record["counts"] = [count for column in content.get("shares", ()) for count in column]
    if not solved:
        record["information"] = content["certificate"]["information_nats"]
        record["chances"] = [float(number) for number in _numerators(content["law"])]
    return {f"protocol: {key}": value for key, value in record.items()}


def _numerators(law: Any) -> Iterator[int]:
    """The integers of a law, which are written as text, in their order."""
    if isinstance(law, str) and law.isdecimal():
        yield int(law)
    elif isinstance(law, (list, dict)):
        for item in law.values() if isinstance(law, dict) else law:
            yield from _numerators(item)


def _table(path: Path) -> Record:
    """The rows of a table in their order, without the names of its columns."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {"drawn rows": len(rows), "drawn": hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]}


def _audit(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    record = _picked(found, AUDIT) | {"signed": bool(found.get("signed_by"))}
    if found["epsilon"] is not None:
        record["certificate"] = _certificate(found["certified"], found["epsilon"])
    return record if solved else record | _picked(found, AUDIT_MECHANISM)


def _apply(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    return _picked(found, APPLY) | _picked(found, APPLY_MECHANISM) | _table(folder / found["table"])


def _estimate(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    record = _picked(found, ESTIMATE)
    for table in found["tables"]:
        name = ",".join([*table["columns"], *table["group"].values()])
        record[f"rows of {name}"] = table["rows"]
        record[f"labels of {name}"] = [" & ".join(cell["labels"]) for cell in table["cells"]]
        for number in CELL:
            record[f"{number} of {name}"] = [cell[number] for cell in table["cells"]]
        record[f"identified of {name}"] = all(cell["identified"] for cell in table["cells"])
    return record


def _solve(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    record = _picked(found, SOLVE)
    people = found["population"]
    measured = people["epsilon"] if people else found["leakage"][found["promise"]]
    record["certificate"] = _certificate(_canonical(measured), found["epsilon"])  # in floats: solve seals nothing
    record["objective"] = _objective(found["use"], found["value"], found["bound"])
    if found["average"] is not None:
        record["average"] = _certificate(_canonical(found["about_secret"]), found["average"])
    return record if solved else record | _picked(found, SOLVE_MECHANISM)


def _scan(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    record = _picked(found, SCAN)
    for column in found["columns"]:
        record[f"column {column['column']}"] = [column[key] for key in SCAN_COLUMN]
        if column["in_bins"]:
            record[f"column {column['column']} in bins"] = [column["in_bins"][key] for key in ("values", "lip", "ldp")]
    for pair in found["together"]["pairs"]:
        record[f"together {','.join(pair['columns'])}"] = [pair["combinations"], pair["epsilon"], pair["keeps"]]
    for choice in found["to_choose"]:
        record[f"belief at {choice['epsilon']}"] = choice["becomes"]
        for error in choice["shares_within"]:
            record[f"error of {','.join(error['columns'])} at {choice['epsilon']}"] = _objective(
                "statistics", error["average"], None
            )
    return record


def _curve(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    record = {"entropy": found["entropy"], "use": found["use"]}
    for point in found["points"]:
        value = point["utility"] if point["value"] is None else point["value"]
        solver = point["name"].startswith("optimal")
        record[f"{point['name'].partition(',')[0]} at {point['epsilon']}"] = (
            _objective(found["use"], value, point["bound"]) if solver else value
        )
    return record


def _funnel(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    record = {"entropy": found["entropy"], "about the secret": found["about_secret"]}
    for point in found["points"]:
        record[f"at {point['average']}"] = _objective("information", point["utility"], point["bound"])
        record[f"told at {point['average']}"] = _certificate(point["about_secret"], point["average"])
    for point in found["promises"]:
        record[f"{point['promise']} at {point['epsilon']}"] = _objective("information", point["utility"], None)
    return record


def _reproduce(found: Any, folder: Path, solved: bool, seeded: bool) -> Record:
    """The sums of the columns of a figure's numbers, as far as they are finite."""
    record: Record = {}
    for name in found["files"]:
        if name.endswith(".csv"):
            with (folder / name).open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            record["rows"] = len(rows)
            for column in rows[0]:
                numbers = [float(row[column]) for row in rows]
                record[f"sum of {column}"] = math.fsum(filter(math.isfinite, numbers))
                record[f"infinite {column}"] = sum(map(math.isinf, numbers))
    return record


def _files(*keys: str) -> Callable[[Any, Path, bool, bool], Record]:
    """A recorder that says whether files were written."""
    return lambda found, folder, solved, seeded: {
        "written": all((folder / found[key]).stat().st_size > 0 for key in keys if key in found)
    }


RECORDERS: dict[str, Callable[[Any, Path, bool, bool], Record]] = {
    "demo": _demo,
    "sanitise": _release,
    "design": _release,
    "apply": _apply,
    "audit": _audit,
    "estimate": _estimate,
    "scan": _scan,
    "solve": _solve,
    "curve": _curve,
    "funnel": _funnel,
    "reproduce": _reproduce,
    "keygen": _files("private", "public", "key"),
    "sign": _files("signature"),
    "completion": lambda found, folder, solved, seeded: {"shell": found["shell"], "script": bool(found["script"])},
}


def _picked(found: Any, paths: dict[str, str]) -> Record:
    return {name: _at(found, path) for name, path in paths.items()}


def _at(found: Any, path: str) -> Any:
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _objective(use: str, value: float, bound: float | None) -> Record:
    return {"value": value, "bound": bound, "better": "more" if use.startswith("information") else "less"}


def _certificate(certified: float, promised: float | None) -> Record:
    return {"certified": certified, "promised": promised}


def _canonical(value: Any) -> Any:
    """Numbers as they are stored, names in small letters; certificates keep all digits, as nothing may exceed them."""
    if isinstance(value, dict) and "certified" in value:
        return value
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value.lower() if isinstance(value, str) else value
