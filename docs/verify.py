"""Check the promise of a privacyfunnel protocol.json with a published model, from that file alone.

    python verify.py protocol.json

It needs Python 3.10 and nothing else. All comparisons are of integers; e^ε is rounded down. It exits with 0 where the
promise holds, with 1 where it does not, and with 2 where the file is damaged or of a kind that it does not check.
The promise: whoever believes the model of the file, sees every published record and knows all others' records changes
their belief about one person's secret by a factor of e^ε at most, ε being the whole of model and records.
"""

import hashlib
import itertools
import json
import sys
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

DIGITS = Context(prec=60)


def read(path):
    """The content of the file, if its digest is right."""
    content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    stated = content.pop("digest", None)
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(canonical.encode()).hexdigest() != stated:
        raise ValueError("its content does not match its digest")
    if "model" not in content or content["sees_secret"] or "population" in content["promise"]:
        raise ValueError("it has no published model, so its promise cannot be checked without the table")
    if content["kind"] == "real-or-synthetic":
        raise ValueError(
            "a mechanism of the kind 'real-or-synthetic' lists no combinations; its slacks are proved again, from this "
            "file alone, by: privacyfunnel audit"
        )
    return content


def channel(law):
    """A row per input: the chance of each output, as a numerator over 2^64."""
    rows = [{y: int(n) for y, n in row} for row in law["rows"]]
    if any(sum(row.values()) != 2**64 or min(row.values()) < 1 for row in rows):
        raise ValueError("the chances of an input must sum to 1")
    return rows


def likelihoods(content, combos):
    """For every output the chances of it given each input, up to a common factor."""
    kind, law = content["kind"], content["law"]
    if kind == "channel":
        rows = channel(law)
        for y in range(len(law["outputs"])):
            yield [row.get(y, 0) for row in rows]
    elif kind == "forced-response":
        truth, noise = int(law["truth"]), [int(n) for n in law["noise"]]
        if truth + sum(noise) != 2**64 or len(noise) != len(combos):
            raise ValueError("the chances of an input must sum to 1")
        for y, forced in enumerate(noise):
            yield [forced + truth * (x == y) for x in range(len(combos))]
    else:
        raise ValueError(f"a mechanism of the kind '{kind}' is not checked here; privacyfunnel audit does")


def events(name, weights, combos):
    """Pairs of events that the promise compares, each the weights of the inputs."""
    if name == "LDP":
        yield from (
            (*pair, [sum(column) for column in zip(*weights, strict=True)])
            for pair in itertools.combinations(weights, 2)
        )
        return
    if name not in ("LIP", "SRLIP"):
        raise ValueError(f"a promise called '{name}' is not checked here")
    columns = range(len(combos[0]))
    sizes = columns if name == "SRLIP" else (0,)
    for some in itertools.chain.from_iterable(itertools.combinations(columns, k) for k in sizes):
        for shared in {tuple(combo[j] for j in some) for combo in combos}:
            inside = [tuple(combo[j] for j in some) == shared for combo in combos]
            here = [[w * among for w, among in zip(row, inside, strict=True)] for row in weights]
            everybody = [sum(column) for column in zip(*here, strict=True)]
            yield from ((row, everybody, everybody) for row in here)


def box(event, everybody, robust):
    """The least and the largest P(x | E) of whoever has other odds; without `robust` those of the model."""
    low, high, whole = [], [], sum(event)
    for mine, all_of_them in zip(event, everybody, strict=True):
        least, most, others = Fraction(mine), Fraction(mine), all_of_them - mine
        if robust == "any":
            least, most = Fraction(0), Fraction(all_of_them)
        elif robust is not None and mine:
            gamma = Fraction(robust)
            least, most = (all_of_them * mine * g / (g * mine + others) for g in (1 / gamma, gamma))
        low.append(least / whole)
        high.append(most / whole)
    return low, high


def extremes(low, high, chances):
    """The least and the largest P(y | E), up to a common factor: the rest goes where y is least, or most, likely."""
    found = []
    for order in (sorted(range(len(chances)), key=chances.__getitem__, reverse=down) for down in (False, True)):
        left, total = 1 - sum(low), sum(p * q for p, q in zip(low, chances, strict=True))
        for x in order:
            more = min(left, high[x] - low[x])
            left, total = left - more, total + more * chances[x]
        found.append(total)
    return found


def worst_ratio(content):
    """The largest ratio of chances of an output given two events that are compared, exactly."""
    labels = content["publish"][0]["labels"]
    combos = [tuple(c) for c in content["combinations"] or [[code] for code in range(len(labels))]]
    weights = content["model"]["weights"]
    if len(set(combos)) < len(combos) or any(len(row) != len(combos) or min(row) < 1 for row in weights):
        raise ValueError("the model must have a positive weight for each secret and value")
    worst, promise = Fraction(1), content["promise"]
    pairs = [
        [box(event, everybody, promise.get("robust")) for event in (one, other)]
        for one, other, everybody in events(promise["name"], weights, combos)
    ]
    for chances in likelihoods(content, combos):
        if len(chances) != len(combos):
            raise ValueError("the mechanism must have a row for each value")
        if any(chances):
            for one, other in pairs:
                (least, most), (others_least, others_most) = (extremes(*event, chances) for event in (one, other))
                for above, below in ((most, others_least), (others_most, least)):
                    if above and not below:
                        return None
                    if below:  # an output that nobody of these has says nothing among them
                        worst = max(worst, above / below)
    return worst


def main(path):
    """Check, and say what was found."""
    try:
        content = read(path)
        promise, model = content["promise"], content["model"]
        epsilon = promise["epsilon"]
        parts, whole = Fraction(epsilon) + Fraction(model["epsilon"]), Fraction(model["total_epsilon"])
        ratio = worst_ratio(content)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        print(f"{path}: not checked: {error}.")
        return 2
    allowed = Fraction(DIGITS.next_minus(DIGITS.exp(Decimal(epsilon)))) if epsilon else Fraction(1)
    if ratio is None or ratio > allowed:
        print(f"{path}: {promise['name']} ε = {epsilon:g} does NOT hold for the published model.")
        return 1
    if parts > whole:
        print(f"{path}: records and model have more than the whole ε = {float(whole):g}. It does NOT hold.")
        return 1
    print(f"{path}: {promise['name']} ε = {float(whole):g} about {' & '.join(content['secret']['columns'])} holds:")
    print(f"  {float(Fraction(model['epsilon'])):g} for the model, {epsilon:g} for the records")
    print(f"  (which use a factor of {float(ratio):.6g}).")
    if "robust" in promise:
        print(f"  It also holds for odds that differ from the model's by a factor of {promise['robust']}.")
    print(f"  A label is named because of one person with a chance of {float(Fraction(model['delta'])):g} at most.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else (print(__doc__) or 2))
