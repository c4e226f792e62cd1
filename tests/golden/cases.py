"""The golden cases: each runs commands in a fresh folder that holds the tables, one after the other."""

from dataclasses import dataclass

UNSEEDED = "sanitise people.csv --secret illness --no-report --prior table"  # which the ledger remembers
RELEASE = f"{UNSEEDED} --seed 5 --into out"
MODEL = "sanitise people.csv --secret illness --no-report --seed 5"
PRIVATE = "sanitise people.csv --secret illness --no-report --prior population"
AUDIT = "audit out/owner/protocol.json people.csv --secret illness --sanitised out/public/sanitised.csv"
ESTIMATE = "estimate out/owner/protocol.json out/public/sanitised.csv"
DESIGN = "design people.csv --secret illness --prior table --into protocol.json"
SOLVE = "solve counts.csv"
MERGED = "--merge-secrets asthma,flu=lungs"


@dataclass(frozen=True)
class Case:
    """Commands in a folder. Where a solver chose the mechanism, draws and much else may differ between equal optima."""

    name: str
    commands: tuple[str, ...]
    solved: bool = True


def _release(name: str, options: str, *more: str, solved: bool = True) -> Case:
    return Case(name, (f"{RELEASE} {options}", *more), solved)


def _explicit(name: str, options: str, audited: str = "") -> Case:
    """A method of closed form: every draw, and all that follows from the draws, is the same again."""
    return _release(name, options, f"{AUDIT} {audited}", ESTIMATE, solved=False)


PROMISES = (
    _release("promise lip", "--publish job --epsilon 0.5", AUDIT),
    _release("promise lip as a factor", "--publish job --factor 2", AUDIT),
    _release("promise ldp", "--publish job --epsilon 1 --promise ldp", AUDIT),
    _release("promise srlip", "--publish town,age --bin age=0,40 --epsilon 0.2 --promise srlip", AUDIT),
    _release(
        "promise srlip for information", "--publish town,age --bin age=0,40 -e 0.2 --promise srlip --for information"
    ),
    _release("two columns", "--publish job,town --epsilon 0.5", AUDIT),
    _release("two secrets", "--secret town --publish job --epsilon 0.7", "audit out/owner/protocol.json people.csv"),
    _release("population", "--publish job --epsilon 1.5 --population 95%", AUDIT),
    _release("population automatic", "--publish job --epsilon 1.5 --population auto"),
    _release("population ldp", "--publish job --epsilon 2 --promise ldp --population 90%", AUDIT),
    _release("sees secret", "--publish job --epsilon 0.3 --sees-secret", AUDIT),
    _release("average", "--publish job --epsilon 0.5 --average 0.01"),
    _release("average only", "--publish job --average 0.01 --average-only"),
)
USES = tuple(
    _release(f"use {use}", f"--publish job --epsilon 0.5 --for {use} {more}")
    for use, more in (
        ("information", ""),
        ("values", ""),
        ("distance", "--ordered job=clerk,driver,farmer,nurse,teacher,weaver"),
        ("distance:squared", "--ordered job=clerk,driver,farmer,nurse,teacher,weaver"),
        ("distance:costs.csv", ""),
        ("statistics", ""),
        ("statistics:job", ""),
        ("balanced", ""),
        ("balanced:0.97", ""),
    )
)
METHODS = (
    _explicit("randomised response", "--publish job --epsilon 0.5 --method randomised-response"),
    _explicit("randomised response ldp", "--publish job --epsilon 0.5 --promise ldp --method randomised-response"),
    _explicit("conditional reporting", "--publish job -e 0.5 --method conditional-reporting --sees-secret"),
    _explicit("exact shares", "--publish job --epsilon 0.5 --method randomised-response --with-shares"),
    _explicit("kept column", "--publish job --epsilon 1 --method randomised-response --keep town", "--keep town"),
    _explicit("order kept", "--publish job --epsilon 0.5 --method randomised-response --keep-order", "--keep-order"),
    _explicit("published as labels", "--publish job --epsilon 0.5 --method randomised-response --as labels"),
    _explicit("published as values", "--publish job --epsilon 0.5 --method randomised-response --as values"),
    _explicit("rare values merged", "--publish job --epsilon 0.5 --method randomised-response --merge-rare 30"),
    _explicit("secrets merged", f"--publish job -e 0.5 --method randomised-response {MERGED}", MERGED),
    _explicit("quantiles", "--publish age --epsilon 0.05 --bin age=quantiles:5 --method randomised-response"),
    _explicit("quarters", "--publish visit --epsilon 0.1 --bin visit=quarter --method randomised-response"),
    _explicit("prefix", "--publish job --epsilon 0.3 --bin job=prefix:1 --method randomised-response"),
    _release("labels of an optimum", "--publish job --epsilon 0.5 --as labels"),
    _release("values of an optimum", "--publish job --epsilon 0.5 --as values"),
)
ESTIMATES = (
    Case(
        "estimates",
        (
            f"{RELEASE} --publish job,town --epsilon 0.5 --method randomised-response",
            f"{ESTIMATE} --columns job --method ml",
            f"{ESTIMATE} --columns job --method projection",
            f"{ESTIMATE} --columns job --method inversion",
            f"{ESTIMATE} --columns job --columns job,town --level 0.9",
            f"{ESTIMATE} --columns town --target population",
        ),
        False,
    ),
    Case(
        "estimates in groups",
        (
            f"{RELEASE} --publish job --epsilon 0.5 --method randomised-response --keep town --accept-kept",
            f"{ESTIMATE} --by town",
        ),
        False,
    ),
)
OTHERS = (
    Case("demo", ("demo --into demo",)),
    Case(
        "published model",
        (
            f"{MODEL} --publish job --epsilon 6 --method randomised-response --into out",
            "audit out/public",
            "audit out people.csv",
            "estimate out/public",
        ),
        False,
    ),
    Case("published model of an optimum", (f"{MODEL} --publish job --epsilon 6 --into out", "audit out/public")),
    Case(
        "published model with given labels",
        (
            "scan people.csv --secret illness --domain domain.json",
            f"{MODEL} --publish job --epsilon 2 --domain domain.json --into out",
            "audit out/public",
        ),
    ),
    Case("scan", ("scan people.csv --secret illness --epsilon 1",), False),
    Case("scan to choose", ("scan people.csv --secret illness --publish town --promise ldp",)),
    Case(
        "private design",
        (
            "scan people.csv --secret illness --domain domain.json",
            f"{PRIVATE} --seed 5 --publish job --epsilon 5 --design-epsilon 3 --domain domain.json --into out",
            "audit out/public/protocol.json people.csv --secret illness --domain domain.json",
        ),
    ),
    Case(
        "design and apply",
        (
            f"{DESIGN} --publish job --epsilon 0.5 --method randomised-response",
            "apply protocol.json people.csv --into first.csv --seed 3",
            "apply protocol.json later.csv --into second.csv --seed 4 --unknown drop --again --accept-drift",
            "apply protocol.json later.csv --into third.csv --seed 4 --unknown blur --again --accept-drift",
            "apply protocol.json people.csv --into fourth.csv --seed 3 --row-id id --again",
            "audit protocol.json people.csv",
        ),
        False,
    ),
    Case("design of an optimum", (f"{DESIGN} --publish job --epsilon 0.5 --for information",)),
    Case(
        "signature",
        (
            "keygen owner.pem",
            "keygen rows.key --rows",
            f"{RELEASE} --publish job --epsilon 0.5 --method randomised-response",
            "sign out/owner/protocol.json out/public/sanitised.csv --key owner.pem",
            f"{AUDIT} --signed-by owner.public.pem",
        ),
        False,
    ),
    Case(
        "ledger",
        (
            f"{UNSEEDED} --publish job --epsilon 0.5 --method randomised-response --into out",
            f"{UNSEEDED} --publish town --epsilon 0.2 --method randomised-response --into refused",
            f"{UNSEEDED} --publish town --epsilon 0.2 --method randomised-response --into again --again",
            "audit out/owner/protocol.json people.csv --with again/owner/protocol.json",
        ),
        False,
    ),
    Case(
        "matrix",
        (
            f"{RELEASE} --publish job --epsilon 0.5 --method randomised-response --as values",
            f"{ESTIMATE} --matrix matrix.csv",
            "audit people.csv --matrix matrix.csv --secret illness --publish job",
        ),
        False,
    ),
    Case("solve lip", (f"{SOLVE} --epsilon 0.5",)),
    Case("solve ldp", (f"{SOLVE} --epsilon 1 --promise ldp",)),
    Case("solve srlip", (f"{SOLVE} --epsilon 0.5 --promise srlip",)),
    Case("solve for statistics", (f"{SOLVE} --epsilon 0.5 --for statistics",)),
    Case("solve for values", (f"{SOLVE} --epsilon 0.5 --for values",)),
    Case("solve for a population", (f"{SOLVE} --epsilon 1.5 --population 95%",)),
    Case("solve with the secret", (f"{SOLVE} --epsilon 0.3 --sees-secret",)),
    Case("solve with an average", (f"{SOLVE} --epsilon 0.5 --average 0.02",)),
    Case("solve by randomised-response", (f"{SOLVE} --epsilon 0.5 --method randomised-response",), False),
    Case("solve by conditional-reporting", (f"{SOLVE} -e 0.5 --method conditional-reporting --sees-secret",), False),
    Case("curve", ("curve counts.csv --epsilons 0.2,0.5,1",)),
    Case("curve of a table", ("curve people.csv --secret illness --publish job --epsilons 0.5,1 --for statistics",)),
    Case("curve ldp", ("curve counts.csv --epsilons 0.5,1 --promise ldp --sees-secret",)),
    Case("funnel", ("funnel counts.csv --averages 0.01,0.05",)),
    Case("figure", ("reproduce grr-cr --quick --into paper",), False),
    Case("completion", ("completion bash",), False),
)
CASES = (*PROMISES, *USES, *METHODS, *ESTIMATES, *OTHERS)
