"""The fields of a spec: the one place that holds the help, the limits and the example of each.

The command line, release.toml, the studio's form, the documentation and the JSON Schema are made from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from privacyfunnel.hints import option_name
from privacyfunnel.spec.kinds import (
    ANY_PATH,
    ANY_TEXT,
    BINS,
    DATE,
    DESIGN_EPSILON,
    FLAG,
    MERGE_RARE,
    MERGE_SECRETS,
    MOST_DIGITS,
    NAMES,
    ORDERED,
    PATH,
    POPULATION,
    ROBUST,
    SECRETS,
    TEXT,
    Kind,
    choice,
    method_name,
    number,
    whole_number,
)

SANITISE, DESIGN, APPLY = "sanitise", "design", "apply"
COMMANDS = (SANITISE, DESIGN, APPLY)
DESIGNING, DRAWING = (SANITISE, DESIGN), (SANITISE, APPLY)

OUTCOMES, LABELS, VALUES = "outcomes", "labels", "values"
ERROR, BLUR, DROP = "error", "blur", "drop"
FORMATS = ("csv", "csv.gz", "csv.zst", "tsv", "tsv.gz", "tsv.zst", "parquet", "arrow", "feather", "ipc")
METHODS = (
    "auto",
    "optimal",
    "real-or-synthetic",
    "randomised-response",
    "conditional-reporting",
)

MODEL, TABLE, POPULATION_PRIOR = "model", "table", "population"  # what a promise compares beliefs with
READING = "Reading the table"

# Who gets the files, and what that means where a field was not given.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "everybody": {"prior": MODEL, "as_": VALUES},
    "analysts": {"prior": TABLE},
    "inside": {"prior": TABLE, "with_shares": True},
}


@dataclass(frozen=True, slots=True)
class Option:
    """What a front end needs to know of a field."""

    kind: Kind
    example: Any = None  # as it stands in a release.toml
    metavar: str = ""
    commands: tuple[str, ...] = COMMANDS  # of those that make or apply a release
    choices: tuple[str, ...] = ()  # to complete and to show, where the kind has none; a package checks
    short: str = ""  # the short flag
    common: bool = False  # shown by the short help; the others by the long help alone
    older: str = ""  # a name that the option had


OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "Columns": {
        "secret": Option(SECRETS, "illness", "COLUMN", DESIGNING, short="-s", common=True),
        "publish": Option(NAMES, ["town", "age"], "COLUMN", DESIGNING, short="-p", common=True),
        "keep": Option(NAMES, ["year"], "COLUMN", DRAWING),
        "allow": Option(NAMES, ["case_number"], "COLUMN", DESIGNING),
    },
    "Promise": {
        "for_whom": Option(choice(*PRESETS), "analysts", commands=DESIGNING, common=True),
        "epsilon": Option(number(least=0), 1.0, "ε", short="-e", common=True),
        "factor": Option(number(least=1), 2.0, "F", common=True),
        "promise": Option(ANY_TEXT, "lip", choices=("lip", "pml", "ldp", "srlip"), commands=DESIGNING),
        "prior": Option(choice(MODEL, TABLE, POPULATION_PRIOR), MODEL, commands=DESIGNING),
        "population": Option(POPULATION, "95%", "95%|auto|none", DESIGNING),
        "robust": Option(ROBUST, 2, "FACTOR|any", DESIGNING),
        "composable": Option(number(above=0), 3.0, "A", DESIGNING),
        "known": Option(NAMES, ["sex"], "COLUMN", DESIGNING),
        "after": Option(ANY_PATH, "out/public", "FOLDER", (SANITISE,)),
        "average": Option(number(least=0), 0.05, "NATS", DESIGNING),
        "average_only": Option(FLAG, commands=DESIGNING),
        "sees_secret": Option(FLAG, commands=DESIGNING),
    },
    "Use and method": {
        "use": Option(ANY_TEXT, "statistics", "USE[:…]", DESIGNING),
        "ordered": Option(ORDERED, {"size": ["S", "M", "L"]}, "COLUMN=ORDER", DESIGNING),
        "method": Option(method_name(*METHODS), "auto", "METHOD", DESIGNING, choices=METHODS),
        "gap": Option(number(above=0), 0.001, "NATS", DESIGNING),
        "time_limit": Option(number(above=0), 60.0, "SECONDS", DESIGNING),
    },
    "Coarser values": {
        "bins": Option(BINS, {"age": [0, 18, 65], "visit": "month"}, "COLUMN=HOW", common=True),
        "merge_rare": Option(MERGE_RARE, 10, "ROWS", DESIGNING, common=True, older="fewest"),
        "merge_secrets": Option(MERGE_SECRETS, {"other": ["a", "b"]}, "VALUES=NAME"),
    },
    "Published rows": {
        "as_": Option(choice(OUTCOMES, LABELS, VALUES), OUTCOMES, commands=DESIGNING),
        "accept_kept": Option(FLAG, commands=DRAWING),
        "keep_order": Option(FLAG, commands=DRAWING),
        "with_shares": Option(FLAG, commands=DESIGNING),
        "row_id": Option(TEXT, "id", "COLUMN", DRAWING),
        "key_file": Option(ANY_PATH, "rows.key", "FILE", DRAWING),
        "seed": Option(whole_number(least=-(10**MOST_DIGITS)), 1, "NUMBER", DRAWING),
        "unknown": Option(choice(ERROR, BLUR, DROP), ERROR, common=True, commands=(APPLY,)),
        "accept_drift": Option(FLAG, commands=(APPLY,)),
    },
    "Private design": {
        "design_epsilon": Option(DESIGN_EPSILON, 0.5, "ε", DESIGNING),
        "domain": Option(ANY_PATH, "domain.json", "FILE", DESIGNING),
        "public_labels": Option(NAMES, ["state"], "COLUMN", DESIGNING),
        "zeros": Option(ANY_PATH, "zeros.csv", "FILE", DESIGNING),
        "model_table": Option(ANY_PATH, "synthetic.csv", "FILE", DESIGNING),
        "design_noise": Option(choice("own", "opendp"), "own", commands=DESIGNING),
    },
    READING: {
        "table": Option(ANY_PATH, "people.csv", "TABLE", DESIGNING),
        "query": Option(TEXT, "select * from people", "SELECT"),
        "counts": Option(TEXT, "rows", "COLUMN", (DESIGN,)),
        "delimiter": Option(TEXT, ";", "TEXT"),
        "encoding": Option(TEXT, "latin-1", "NAME"),
        "decimal": Option(TEXT, ",", "MARK"),
        "na": Option(NAMES, ["unknown"], "TEXT"),
        "sheet": Option(TEXT, "2026", "NAME"),
        "header_row": Option(whole_number(least=1), 3, "NUMBER"),
        "person": Option(TEXT, "patient", "COLUMN"),
        "person_row": Option(TEXT, "last", "first|last", choices=("first", "last")),
    },
    "For the record": {
        "approved_by": Option(TEXT, "Review board, 2026-11-03", "NAME", (SANITISE,)),
        "purpose": Option(TEXT, "teaching material", "TEXT", (SANITISE,)),
        "contact": Option(TEXT, "data@example.org", "TEXT", (SANITISE,)),
        "valid_until": Option(DATE, "2027-12-31", "DATE", (SANITISE,)),
    },
    "Output": {
        "into": Option(PATH, "out", "PATH", common=True),
        "into_table": Option(TEXT, "postgresql:///registry#people_public", "DATABASE#TABLE", DRAWING),
        "parts": Option(whole_number(least=1), 8, "NUMBER", (APPLY,)),
        "format": Option(choice(*FORMATS), "parquet", commands=(SANITISE,)),
        "excel_safe": Option(FLAG, commands=DRAWING),
        "report": Option(FLAG, commands=(SANITISE,)),
        "sign": Option(PATH, "owner.pem", "FILE", (SANITISE,)),
        "signed_by": Option(PATH, "owner.public.pem", "FILE", (APPLY,)),
        "ledger": Option(PATH, "ledger.json", "FILE"),
        "try_": Option(FLAG, commands=(SANITISE,), common=True),
        "anyway": Option(FLAG, commands=(SANITISE,)),
        "again": Option(FLAG),
        "force": Option(FLAG, common=True),
    },
}
GROUPS: Mapping[str, str] = {name: group for group, named in OPTIONS.items() for name in named}

HELP: Mapping[str, str] = {
    "secret": "The secret column. Repeated: each is promised by itself, health=0.5 with its own ε, and nothing is "
    "promised about several together. With commas between: one secret of all of them.",
    "publish": "A column to publish, randomised; several by comma (a name with a comma in quotes) or repetition.",
    "keep": "A column to publish unchanged, judged together with what is published; several likewise.",
    "allow": "Publish this column although it holds identifiers, free text, days or coordinates; several likewise.",
    "for_whom": "Who gets the files: everybody (all of them may be published, values as such), analysts (they get "
    "protocol.json too, and are trusted with counts) or inside (exact shares as well). Sets what is not given.",
    "epsilon": "Largest change of a belief about the secret that starts from the prior: a factor of e^ε. At ε = 1 a "
    "belief of 30 % may become 74.3 %, at 0.5 49.5 %, at 0.1 33.2 % (docs/choosing.md). For apply: on these rows.",
    "factor": "The same as a factor: 2 means ε = ln 2, so that no such belief more than doubles. Default: 2.",
    "promise": "lip: each secret compared with everybody; pml: lip, but only how far a belief rises (pml:floor=0.05 "
    "for every prior that gives each value so much); alip:0.5,1: how far it falls and rises; ldp: between any two "
    "secrets (ldp:graded.csv with an ε per pair, ldp:line by distance); srlip: lip, also to those who know published "
    "values; events:groups.csv: groups of values against the rest.",
    "prior": "model: a model made from counts with noise, published with the mechanism: all files may be public "
    "and ε covers them together; table: the table's own frequencies, the mechanism is then for the owner alone; "
    "population: those whom the rows are a sample of, by counts with noise. Default: model.",
    "population": "Keep the promise, with this confidence, for the population that the rows are a random sample of: by "
    "noisy counts of a domain file, or with prior table by the table's own; auto, with prior table: with 95 % where "
    "possible; none: not.",
    "robust": "Also keep the promise for everybody whose odds of a secret, given what is published, differ from the "
    "model's by at most this factor; any: for everybody who agrees with it on the shares of the secret and of what is "
    "published.",
    "composable": "Also make no output more likely by more than e^A under one published value than under another: "
    "releases that are made independently then add up, this one by A at most (docs/theory.md, Theorem 77).",
    "known": "Also keep the promise for neighbours who know this column of a person beforehand; several likewise, "
    "known together or some of them. For several columns under a published model.",
    "after": "The folder of an earlier release of the same people, made with a row id: the promise is then about all "
    "releases together, with the model, the labels and, unless another is given, the ε of that one.",
    "average": "Also bound the average leakage I(S;Y), in nats.",
    "average_only": "Promise the average leakage alone; the ε that results is stated.",
    "sees_secret": "Let the mechanism read the secret as well: it keeps more and promises less.",
    "use": "What the table is best for: information, values (the right value most often), distance (or "
    "distance:squared, distance:costs.csv), statistics (all shares, or statistics:COLUMN,…, "
    "statistics:queries.csv, statistics:weights.csv), balanced (statistics with 99 % of the information, "
    "or balanced:0.97). Default: statistics where possible.",
    "ordered": "A column with ordinal values: size=S,M,L. Numbers and bins need none.",
    "method": "auto, optimal, real-or-synthetic, randomised-response or conditional-reporting. Default: auto, the "
    "optimum, or under a published model with many columns real or synthetic records.",
    "gap": "Stop when the proof is within this many nats of the optimum.",
    "time_limit": "Stop after so many seconds with the best so far and its bound. "
    "Default: 60 seconds of counted work, alike on all machines.",
    "bins": "Coarser values: numbers age=0,18,65, age=quantiles:8, price=width:1000, age=top:85 or "
    "age=bottom:18,top:85; dates visit=year (decade, quarter, month, week, weekday; month:dmy where day and month"
    " could be swapped); codes icd=prefix:3; any icd=map:groups.csv (value;group;…; map:groups.csv:2 for "
    "a coarser level); or age=values.",
    "merge_rare": "Publish values with fewer rows than this as 'other': 10 for all published columns, zip=10 for one. "
    "A model counts with noise; without one bins are merged with their neighbours, too.",
    "merge_secrets": "Treat values of the secret as one: 'a,b,c=other'. Whether it is a, b or c is no longer "
    "protected.",
    "as_": "outcomes: the most likely value, a code, and a codebook; labels: groups of values as text; values: "
    "original categories.",
    "accept_kept": "Publish kept columns, such as an id, without judging them: the promise then does not cover them.",
    "keep_order": "Publish the rows in the table's order, which may reveal the secret.",
    "with_shares": "Publish the exact shares of each published column in protocol.json as well.",
    "row_id": "A column that identifies rows: the draw of a row follows from it, not from the row's position. The "
    "owner's folder then lists who got what, for a release after this one.",
    "key_file": "With a row id: the owner's key (made by keygen), by which unchanged people get the same draw every "
    "time.",
    "seed": "For tests only: a release from a seed is not for publication.",
    "unknown": "Rows with values that the mechanism does not know: error, blur (as if they had a random value) or "
    "drop.",
    "accept_drift": "Publish rows on which more leaks than was promised; a notice beside them says so.",
    "design_epsilon": "How much of the whole ε counts with noise get. Default: by expected error.",
    "domain": "The file of public labels and bins, as scan drafts it. Default for a model: labels that many rows have.",
    "public_labels": "Name every value of this column, since everybody knows which ones there are (states, sexes, age "
    "groups); several likewise. Default: values that many rows have.",
    "zeros": "A table of two values or more in each line, in the columns that they belong to, which nobody has "
    "together (an empty cell is any value): no published row has them. They become public. For several columns under a "
    "published model.",
    "model_table": "A table of the same columns that any program made from these rows with pure differential privacy: "
    "the model is fitted to it alone. Its ε is that of the design, and its labels are those of the domain file.",
    "design_noise": "The source of noise: own, or opendp (an extra package).",
    "table": "The table, where no other is named: a file, or with a query a database.",
    "query": "The rows of a database: select … from …",
    "counts": "The table has a row per combination; this column counts the rows of each.",
    "delimiter": "The field separator, if it is not detected.",
    "encoding": "The text encoding, if it is not detected.",
    "decimal": "The decimal mark, if it is not detected: . or ,",
    "na": "A text for a missing number or date, besides NA, N/A, NaN, null, None, nil, . - -- ? and nothing; "
    "several by comma or repetition.",
    "sheet": "The sheet of an .xlsx file. Default: the first.",
    "header_row": "The row that holds the names of the columns, counted from 1, where titles stand above it. Default: "
    "found.",
    "person": "The column that identifies persons: each counts as one row if their rows agree.",
    "person_row": "Which row of a person counts where they differ: first or last.",
    "approved_by": "Who approved the release; for the report and the disclosure record.",
    "purpose": "What the table is released for; likewise, and in dcat.jsonld for everybody.",
    "contact": "Whom to ask about the release; likewise, and in dcat.jsonld for everybody.",
    "valid_until": "Until when the approval holds, as 2027-12-31; likewise.",
    "into": "Where the output goes: the folder of a release, the file of a protocol or of applied rows.",
    "into_table": "Also write the rows into a new table of a database, in one transaction: "
    "postgresql://host/database#table, or people.duckdb#table.",
    "parts": "Write the rows as a folder of so many Parquet files of equal size.",
    "format": "The format of the sanitised table. Default: that of the table.",
    "excel_safe": "Put an apostrophe before text that Excel takes for a formula or a day, like 7-8.",
    "report": "Write report.html, for the owner only.",
    "sign": "Sign the table and its protocol with this private key (keygen).",
    "signed_by": "The owner's public key: refuse files that it did not sign.",
    "ledger": "The owner's record of releases and private designs. Default: $PRIVACYFUNNEL_LEDGER, or a file beside "
    "the table.",
    "try_": "Say what the release would be; nothing is drawn, written or recorded.",
    "anyway": "Publish although the release is too inaccurate for its use.",
    "again": "Release rows again, or draw noise for their counts again; both count.",
    "force": "Overwrite existing output.",
}


@dataclass(frozen=True, slots=True)
class SpecField:
    """A field of a spec by name, with its default, its group and its help."""

    name: str
    default: Any
    group: str
    option: Option
    help: str

    @property
    def key(self) -> str:
        """The name in a release.toml."""
        return self.name.rstrip("_")

    @property
    def is_flag(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def choices(self) -> tuple[str, ...]:
        """What may be given, where that is a list."""
        return self.option.choices or tuple(self.option.kind.schema.get("enum", ()))

    @property
    def flag(self) -> str:
        """The long option of the command line."""
        return option_name(self.name)

    @property
    def negated_flag(self) -> str:
        """The long option that switches a flag off."""
        return option_name(f"no_{self.name}")


def describe_fields(spec: type) -> Iterator[SpecField]:
    """The fields of a spec, in the order of their declaration."""
    for each in fields(spec):
        default, group = {} if each.default is MISSING else each.default, GROUPS[each.name]
        yield SpecField(each.name, default, group, OPTIONS[group][each.name], HELP[each.name])
