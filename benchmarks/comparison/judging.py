"""What attackers and users get out of what an arm published."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

from benchmarks.comparison.arms import LIMIT, Arm
from benchmarks.comparison.environments import RivalError, run_script
from benchmarks.comparison.published import Published
from benchmarks.comparison.regressions import Z, regress
from benchmarks.comparison.tables import MOST_COMBINATIONS, Case, Codes
from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import PrivacyFunnelError

ATTACKED = 1  # draws on which classifiers are trained, members are looked for and anonymeter is run: they take seconds
ATTACKED_EPSILON = 1.0  # and at which ε the two that need a second release, of half of the people,
MOST_SECONDS = 60.0  # if it took no longer to make the first
MOST_INFERRED = 10_000  # rows of tables on which anonymeter is run: it compares each person with every row
ATTACKS = 500  # people whose secret anonymeter guesses, inside and outside of the table
SECOND = 1000  # the first seed of these
ROUNDS = 30  # of gradient boosting


@dataclass(frozen=True)
class Judgement:
    """One draw of an arm, in numbers; none where a question makes no sense or was not asked."""

    leak: float | None  # the largest |ln p(s|y)/p(s)| of a linked record
    linked: float | None  # how often the secret is named right by whoever sees the linked record
    linked_exact: float | None  # the same over all draws, by our sum
    linked_qif: float | None  # … and by qif
    beyond: (
        float | None
    )  # of real rows: those that move a belief by more than e^ε for who fitted a classifier to the table
    learnt: float | None  # … by whoever knows the other columns, and learns from the release
    inside: float | None  # … by anonymeter's attack, about people of the table
    control: float | None  # … and about people who are not in it
    member: float | None  # how well members are told from others: the area under the curve, .5 is a coin
    real: float | None  # the share of rows that show what they had
    one_way: float  # mean error of a share, in points
    two_way: float | None  # mean total variation of tables of two columns, in percent
    three_way: float | None
    off: float | None  # mean error of a regression coefficient, in standard errors of the table's own
    covered: float | None  # share of coefficients of the table that the release's 95 % intervals cover
    conclusions: float | None  # share of coefficients whose sign and significance are the table's
    trained: float | None  # accuracy on true rows of a classifier that was trained on the release
    seconds: float  # of processors, of the draw
    asking: float  # of the questions that are asked of every draw
    memory: float | None


def judge(case: Case, arm: Arm, epsilon: float, seed: int) -> Judgement:
    """Publish once, and ask every question."""
    found = arm.publish(case, epsilon, seed)
    start = time.process_time()
    errors, (off, covered, conclusions) = (
        [_mean_error(case, found, size) for size in (1, 2, 3)],
        _regressions(case, found),
    )
    asking = time.process_time() - start
    attacked = seed < ATTACKED
    twice = attacked and epsilon == ATTACKED_EPSILON and arm.attacked and found.seconds <= MOST_SECONDS
    known = [name for name in case.columns if name != case.target]
    exact, by_qif = _best_guess(case, found) if attacked and found.joint is not None else (None, None)
    second = _attack_half(case, arm, epsilon, seed) if twice else (None,) * 3
    return Judgement(
        leak=found.leak,
        linked=None if found.guesses is None else float((found.guesses == case.coded.secrets).mean()),
        linked_exact=exact,
        linked_qif=by_qif,
        beyond=_beyond(case, found, epsilon),
        learnt=_learnt(case, found) if attacked else None,
        inside=second[0],
        control=second[1],
        member=second[2],
        real=found.real,
        one_way=errors[0] or 0.0,
        two_way=errors[1],
        three_way=errors[2],
        off=off,
        covered=covered,
        conclusions=conclusions,
        trained=_accuracy(case, found.rows, found.rows[:, case.columns.index(case.target)], known, case.target)
        if attacked and known
        else None,
        seconds=found.seconds,
        asking=asking,
        memory=found.memory,
    )


def _mean_error(case: Case, found: Published, size: int) -> float | None:
    """The mean error of a share in points; for two and three columns the mean total variation in percent."""
    errors = []
    for group in case.groups:
        if len(group) == size:
            key = ("true shares", group)
            if key not in case.cache:
                case.cache[key] = case.tabulate(case.coded.codes, None, group)
            shares = found.tables.get(group) if found.tables else None
            shares = case.tabulate(found.records, found.weights, group) if shares is None else shares
            error = np.abs(shares - case.cache[key])
            errors.append(error.mean() if size == 1 else error.sum() / 2)
    return 100 * float(np.mean(errors)) if errors else None


def _regressions(case: Case, found: Published) -> tuple[float, float, float] | tuple[None, None, None]:
    if case.analysis is None:
        return None, None, None
    if ("coefficients",) not in case.cache:
        case.cache["coefficients",] = regress(case, case.analysis, case.coded.codes, np.ones(case.coded.rows))
    true = case.cache["coefficients",]
    told = regress(case, case.analysis, found.records, found.weights, found.covariance)
    error = np.abs(told.values - true.values)
    same = told.conclusions() == true.conclusions()
    return float((error / true.errors).mean()), float((error <= Z * told.errors).mean()), float(same.mean())


def _beyond(case: Case, found: Published, epsilon: float) -> float | None:
    """How often a record moves the belief of who knows better than the published model by more than e^ε."""
    if found.linked_law is None or found.linked_law[1].shape[1] != len(case.coded.secret.labels):
        return None
    codes, shares = case.coded.codes, np.bincount(case.coded.secrets) / case.coded.rows
    if ("beliefs",) not in case.cache:
        with threadpool_limits(1):
            fitted = cross_val_predict(_learner(len(case.columns)), codes, case.coded.secrets, method="predict_proba")
        case.cache["beliefs",] = fitted / shares
    keep, synthetic = found.linked_law
    likelihood = keep[:, None] * case.cache["beliefs",] + synthetic
    ratios = likelihood / (likelihood @ shares)[:, None]
    real = (found.rows == codes).all(axis=1)
    return float((np.abs(np.log(ratios[real])).max(axis=1) > epsilon).mean())


def _learner(columns: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        categorical_features=list(range(columns)), random_state=0, max_iter=ROUNDS, early_stopping=False
    )


def _learnt(case: Case, found: Published) -> float:
    """How often the secret is named right by somebody who knows a person's other columns."""
    if found.secrets is not None:
        return _accuracy(case, found.rows, found.secrets, list(case.columns), case.secret)
    if found.known_model is not None:
        return float((found.known_model(case.coded.codes) == case.coded.secrets).mean())
    return float(np.bincount(case.coded.secrets).max() / case.coded.rows)  # nothing is learnt beyond the shares


def _accuracy(case: Case, rows: Codes, answers: Codes, known: list[str], column: str) -> float:
    """Gradient boosting learns a column from others on the release; how often it is right on the true rows."""
    places = [case.columns.index(name) for name in known]
    truth = case.coded.secrets if column == case.secret else case.coded.codes[:, case.columns.index(column)]
    if case.combinations <= MOST_COMBINATIONS:  # the commonest answer of every combination is the best there is
        shape = tuple(case.coded.sizes[j] for j in places)
        numbers = [
            np.ravel_multi_index(tuple(codes[:, j] for j in places), shape) for codes in (rows, case.coded.codes)
        ]
        counts = np.zeros((int(np.prod(shape)), int(max(answers.max(), truth.max())) + 1))
        np.add.at(counts, (numbers[0], answers), 1)
        return float((counts.argmax(axis=1)[numbers[1]] == truth).mean())
    if len(np.unique(answers)) < 2:
        return float((truth == answers[0]).mean())
    learner = _learner(len(places))
    with threadpool_limits(1):
        learner.fit(rows[:, places], answers)
    return float((learner.predict(case.coded.codes[:, places]) == truth).mean())


def _best_guess(case: Case, found: Published) -> tuple[float, float]:
    """How often the best guess from the linked output is right, by a sum, and by qif."""
    joint: FloatArray = np.asarray(found.joint)
    with TemporaryDirectory() as folder:
        path = Path(folder, "joint.csv")
        pl.DataFrame(joint[:, joint.sum(axis=0) > 0], orient="row").write_csv(path, float_precision=17)
        (output,) = run_script("qif", "qif_vulnerability", path, {}, [0], LIMIT)
    return float(joint.max(axis=0).sum()), float(pl.read_csv(output.path)["right"][0])


def _attack_half(case: Case, arm: Arm, epsilon: float, seed: int) -> tuple[float | None, float | None, float | None]:
    """Publish one half of the people: are their secrets inferred, and are they found, more often than the others?"""
    coded = case.coded
    inside = np.random.default_rng(seed + 17).permutation(coded.rows) < coded.rows // 2
    halves = [replace(coded, secrets=coded.secrets[some], codes=coded.codes[some]) for some in (inside, ~inside)]
    with TemporaryDirectory() as folder:
        paths = [Path(folder, f"{name}.csv") for name in ("half", "control", "released")]
        for half, path in zip(halves, paths, strict=False):
            case.decode(half.codes, half.secrets).write_csv(path)
        try:
            found = arm.publish(replace(case, path=paths[0], coded=halves[0], cache={}), epsilon, SECOND + seed)
        except (RivalError, PrivacyFunnelError):
            return None, None, None
        rates = _infer(case, found, paths, seed)
    own, seen = case.record_numbers(coded.codes), np.sort(case.record_numbers(found.rows))
    scores = np.searchsorted(seen, own, "right") - np.searchsorted(seen, own, "left")
    _, place, times = np.unique(own, return_inverse=True, return_counts=True)
    rare = times[place] == 1  # what is common says nothing about anybody
    if not (rare & inside).any() or not (rare & ~inside).any():
        return *rates, 0.5
    members, others = scores[rare & inside], np.sort(scores[rare & ~inside])
    below, upto = np.searchsorted(others, members, "left"), np.searchsorted(others, members, "right")
    return *rates, float(((below + upto) / 2).mean() / len(others))


def _infer(case: Case, found: Published, paths: list[Path], seed: int) -> tuple[float | None, float | None]:
    """anonymeter's inference attack with its control group, where the release or its model says what to guess."""
    if (found.secrets is None and found.known_model is None) or case.coded.rows > MOST_INFERRED:
        return None, None
    secrets = found.secrets if found.known_model is None else found.known_model(found.rows)
    inside, control, released = paths
    case.decode(found.rows, secrets).write_csv(released)
    options = {"secret": case.secret, "attacks": ATTACKS, "inside": str(inside), "control": str(control)}
    (output,) = run_script("anonymeter", "anonymeter_inference", released, options, [seed], LIMIT)
    rates = pl.read_csv(output.path)
    return float(rates["inside"][0]), float(rates["control"][0])
