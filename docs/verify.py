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
import math
import sys
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path

MOST_LISTED = 400  # combinations of a model of many columns, all of which are outputs
DIGITS, DOWN = Context(prec=60), Context(prec=60, rounding=ROUND_FLOOR)


def read(path):
    """The content of the file, if its digest is right."""
    path = Path(path) / "protocol.json" if Path(path).is_dir() else Path(path)
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    stated = content.pop("digest", None)
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(canonical.encode()).hexdigest() != stated:
        raise ValueError("its content does not match its digest")
    if "model" not in content or content["sees_secret"] or "population" in content["promise"]:
        raise ValueError("it has no published model, so its promise cannot be checked without the table")
    if content["kind"] == "real-or-synthetic":
        list_records(content)
    return content


def list_records(content):
    """Put all combinations of labels, and the weights that a tree gives them, where a listed model has its own."""
    sizes = [len(column["labels"]) for column in content["publish"]]
    if math.prod(sizes) > MOST_LISTED:
        raise ValueError(
            f"a mechanism of the kind 'real-or-synthetic' with {math.prod(sizes):,} combinations of labels is checked, "
            "from this file alone, by: privacyfunnel audit"
        )
    combos = list(itertools.product(*map(range, sizes)))
    rows = tree_weights(content["model"], combos)
    possible = [x for x in range(len(combos)) if any(row[x] for row in rows)]
    content["combinations"] = [combos[x] for x in possible]
    content["model"]["weights"] = [[row[x] for x in possible] for row in rows]


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
    elif kind == "real-or-synthetic":
        yield from synthetic_likelihoods(content, combos)
    else:
        raise ValueError(f"a mechanism of the kind '{kind}' is not checked here; privacyfunnel audit does")


def tree_weights(model, combos):
    """p̃(s, x) of every secret and combination, up to a common factor, from a tree of many columns."""
    rows = []
    for s, share in enumerate(model["shares"]):
        row = []
        for x in combos:
            weight = share
            for j, (parent, table) in enumerate(zip(model["parents"], model["tables"], strict=True)):
                weight *= table[s][0 if parent is None else x[parent]][x[j]]
            row.append(weight)
        rows.append(row)
    return rows


def float_ratios(model, x):
    """p̃(x | s) / p̃(x) in floats, by the operations, in the order, by which a mechanism of this kind is drawn."""
    parents, order = model["parents"], [j for j, parent in enumerate(model["parents"]) if parent is None]
    for above in order:  # grows while it is walked
        order.extend(j for j, parent in enumerate(parents) if parent == above)
    likelihoods = []
    for s in range(len(model["shares"])):
        product = None
        for j in order:
            factor = model["tables"][j][s][0 if parents[j] is None else x[parents[j]]][x[j]] / 2**32
            product = factor if product is None else product * factor
        likelihoods.append(product)
    total = likelihoods[0] * (model["shares"][0] / 2**32)
    for likelihood, share in zip(likelihoods[1:], model["shares"][1:], strict=True):
        total += likelihood * (share / 2**32)
    return [likelihood / total for likelihood in likelihoods]


def believed(r, p, robust):
    """The largest and the least ratio of an event of share p that somebody with other odds believes, in floats."""
    if robust is None or p == 1:
        return r, r
    if robust == "any":
        return 1.0 / p, 0.0
    gamma, held = float(Fraction(robust)), min(r * p, 1.0)
    low = r / (gamma - (gamma - 1.0) * held) * max(1.0 - 2.0 * gamma * 2.0**-38, 0.0)
    return min(gamma * r / (1.0 + (gamma - 1.0) * held), 1.0 / p), low


def event_ratio(ratios, shares, held):
    """p̃(x | E) / p̃(x) of a group of secrets in floats, by the same operations in the same order."""
    if len(held) == len(ratios):
        return 1.0
    if len(held) == 1:
        return ratios[held[0]]
    total, found = sum(shares[s] for s in held), None
    for s in held:
        part = shares[s] / total * ratios[s]
        found = part if found is None else found + part
    return found


def float_limit(size, epsilon):
    """The factor for a size that is a part of ε, in floats, as it was drawn with."""
    if size != epsilon:
        scale = float(size) / float(epsilon)
        while Fraction(scale) * epsilon > size:
            scale = math.nextafter(scale, 0.0)
        size = Fraction(scale) * epsilon
    bound = below(size)
    rho = float(bound)
    return math.nextafter(rho, 0.0) if Fraction(rho) > bound else rho


def kept(content, ratios, number):
    """The chance that a record of this class stays as it is, as a numerator over 2^63."""
    law, shares, promise = content["law"], content["model"]["shares"], content["promise"]
    epsilon, asked = Fraction(promise["epsilon"]), asked_pairs(content)
    limits = {size: float_limit(size, epsilon) for pair in asked for size in pair[2:] if size is not None}
    ways = [(one, other, up) for one, other, up, _ in asked] + [(other, one, down) for one, other, _, down in asked]
    events = {
        held: believed(event_ratio(ratios, shares, held), sum(shares[s] for s in held) / 2**32, promise.get("robust"))
        for pair in asked
        for held in pair[:2]
    }
    found = law["largest"][number] / 2**32
    for place, (e, f, size) in enumerate(way for way in ways if way[2] is not None):
        excess = events[e][0] * (1.0 + 2.0**-38) - events[f][1] * (limits[size] * (1.0 - 2.0**-38))
        if excess > 0:
            found = min(found, law["slacks"][number][place] / 2**32 / (excess * (1.0 + 2.0**-48)))
    return math.floor(found * 2.0**63)


def synthetic_likelihoods(content, combos):
    """The same for real or synthetic records: outputs are records, each drawn as itself or in the place of another."""
    law, model = content["law"], content["model"]
    plain = ("LIP", "LDP", "PML", "ALIP", "Events", "Each")
    if content["promise"]["name"] not in plain or len(model["tables"]) > 30 or "known" in content["promise"]:
        raise ValueError("real or synthetic records of this kind are checked by: privacyfunnel audit")
    unit = 2 ** (32 * (len(model["tables"]) + 1))
    total = [Fraction(sum(column), unit) for column in zip(*model["weights"], strict=True)]
    classes, stay = [], []
    for x in combos:
        ratios = float_ratios(model, x)
        features = [math.floor(r / (1.0 + r) * 4096) for r in ratios]
        near = [sum(p * (2 * f - p) for p, f in zip(at, features, strict=True)) for at in law["prototypes"]]
        strange = any(all(p in (-1, at) for p, at in zip(z, x, strict=True)) for z in law.get("impossible", ()))
        classes.append(len(near) - 1 if strange else near.index(max(near)))
        stay.append(Fraction(kept(content, ratios, classes[-1]), 2**63))
    alpha = law["acceptance"]
    mean = [sum((row[k] * p for k, p in zip(classes, total, strict=True)), Fraction(0)) for row in alpha]
    for y, p in enumerate(total):
        moved = [row[classes[y]] * p / of_all for row, of_all in zip(alpha, mean, strict=True)]
        yield [(1 - a) * moved[k] + (a if x == y else 0) for x, (a, k) in enumerate(zip(stay, classes, strict=True))]


def below(size):
    """e^size, rounded down; exactly 1 for 0."""
    exact = DOWN.divide(Decimal(size.numerator), Decimal(size.denominator))
    return Fraction(DIGITS.next_minus(DIGITS.exp(exact))) if exact else Fraction(1)


def paths(sizes):
    """The shortest path between any two values for which an ε is given."""
    length = {pair: Fraction(size) for one, other, size in sizes for pair in ((one, other), (other, one))}
    values = {value for pair in length for value in pair}
    for between, one, other in itertools.product(values, repeat=3):
        way = length.get((one, between), math.inf) + length.get((between, other), math.inf)
        if one != other and way < length.get((one, other), math.inf):
            length[one, other] = way
    return length


def compared(name, more, epsilon, labels):
    """Pairs of groups of secrets by number, and the ε of either way up; None where that side is not promised.

    `labels` are the values of the secret, each None where it stands for several.
    """
    one_by_one, everybody = [(s,) for s in range(len(labels))], tuple(range(len(labels)))
    sides = {"LIP": (epsilon, epsilon), "SRLIP": (epsilon, epsilon), "PML": (epsilon, None)}
    if name == "ALIP":
        sides["ALIP"] = (Fraction(more["upper"]), Fraction(more["lower"]))
    if name in sides:
        return [(s, everybody, *sides[name]) for s in one_by_one]
    pairs = list(itertools.combinations(everybody, 2))
    if name == "LDP":
        return [((s,), (t,), epsilon, epsilon) for s, t in pairs]
    if None in labels:
        raise ValueError(f"{name} is about values of the secret, of which the model has merged some")
    if name == "GradedLDP":
        length = paths(more["sizes"]) if more["sizes"] else None
        place = None if length else [Fraction(label.strip()) for label in labels]
        size = {
            (s, t): length[labels[s], labels[t]] if length else epsilon * abs(place[s] - place[t]) for s, t in pairs
        }
        return [((s,), (t,), size[s, t], size[s, t]) for s, t in pairs]
    if name == "Events":
        groups = [tuple(s for s in everybody if labels[s] in held) for held in more["events"].values()]
        return [(held, tuple(sorted({*everybody} - {*held})), epsilon, epsilon) for held in groups]
    raise ValueError(f"a promise called '{name}' is not checked here")


def compared_each(more, epsilon, columns, models):
    """The same where every secret column is promised by itself: each has its own rows of the model."""
    first = 0
    for column, model in zip(columns, models, strict=True):
        labels = [group[0] if len(group) == 1 else None for group in model["secrets"]]
        size = Fraction(more["sizes"].get(column, epsilon))
        for one, other, up, down in compared(more["promise"].upper(), {}, size, labels):
            yield tuple(first + s for s in one), tuple(first + s for s in other), up, down
        first += len(labels)


def asked_pairs(content):
    """The pairs of groups that the promise of the file compares, by numbers of rows of its model."""
    promise, model = content["promise"], first_model(content["model"])
    epsilon, more = Fraction(promise["epsilon"]), promise.get("parameters", {})
    if promise["name"] == "Each":
        return list(compared_each(more, epsilon, content["secret"]["columns"], model["each"]))
    labels = [group[0] if len(group) == 1 else None for group in model["secrets"]]
    return compared(promise["name"], more, epsilon, labels)


def rows_of(model):
    """A row of weights for each secret, or for each value of each of several secrets."""
    if "weights" in model:
        return model["weights"]
    return [row for part in model.get("each", [model]) for row in part["weights"]]


def first_model(model):
    """The model that noisy counts were made into: that of the first release."""
    return first_model(model["after"]["model"]) if "after" in model else model


def states(model):
    """After earlier releases: P(s, x, h) in integers, where values stayed and where they are drawn anew; and a unit."""
    base = rows_of(first_model(model))
    size, sums = len(base[0]), [sum(row) for row in base]
    common, found = math.lcm(*sums), []
    for history in model["after"]["histories"]:
        if history is None:
            found.append((base, 1, True))
            continue
        level = model
        for _ in range(history[0]):
            level = level["after"]["model"]
        weights, unit = prior(level["after"]["model"])
        chances = [row.get(history[1], 0) for row in channel(level["after"]["law"])]
        if len(chances) != len(weights[0]):
            raise ValueError("an earlier mechanism must have a row for each value")
        products = [[w * q for w, q in zip(row, chances, strict=True)] for row in weights]
        found.append(([[sum(row[x::size]) for x in range(size)] for row in products], unit * 2**64, False))
    unit = math.lcm(*(each for _, each, _ in found))
    kept, anew = [[] for _ in base], [[] for _ in base]
    for cells, own, new in found:
        for s, row in enumerate(cells):
            scaled = [w * (unit // own) * common for w in row]
            kept[s] += scaled
            anew[s] += scaled if new else [w * sum(scaled) // sums[s] for w in base[s]]
    return kept, anew, unit * common


def prior(model):
    """The weights of a model, a row per secret, and what they are times those of the first."""
    if "after" not in model:
        return rows_of(model), 1
    kept, anew, unit = states(model)
    changing = Fraction(model["after"]["changing"])
    if not 0 < changing < 1:
        raise ValueError("some people may have changed, and not all")
    few, all_of_them = changing.numerator, changing.denominator
    mixed = [
        [(all_of_them - few) * k + few * a for k, a in zip(*rows, strict=True)] for rows in zip(kept, anew, strict=True)
    ]
    return mixed, unit * all_of_them


def beliefs(content, combos):
    """The weights under each of which the promise must hold; of a release after others with a column for all that is
    not listed, which no output has, so that rows sum to the shares of the secrets."""
    model = content["model"]
    if "after" not in model:
        return [rows_of(model)]
    histories = model["after"]["histories"]
    places = list(itertools.product(range(len(histories)), combos[: len(combos) // len(histories)]))
    if [tuple(combo) for combo in combos] != [(h, *value[1:]) for h, value in places]:
        raise ValueError("after a release inputs are every history with every value, in order")
    kept, anew, unit = states(model)
    whole = [len(histories) * unit * sum(row) for row in rows_of(first_model(model))]
    return [[[*row, total - sum(row)] for row, total in zip(weights, whole, strict=True)] for weights in (kept, anew)]


def events(content, combos, weights):
    """Pairs of events that the promise compares, each the weights of the inputs, and how large either ratio may be."""
    promise, model, more = content["promise"], first_model(content["model"]), content["promise"].get("parameters", {})
    name, epsilon = promise["name"], Fraction(promise["epsilon"])
    if content["model"] is not model and (name == "InteriorPML" or "SRLIP" in str((name, more)).upper()):
        raise ValueError(f"after a release a promise called '{name}' is not checked here")
    if (name == "Each") != ("each" in model):
        raise ValueError("a promise about each secret has a table of each, and no other has")
    if name == "InteriorPML":
        yield from mixtures(weights, Fraction(str(more["floor"])), below(epsilon))
        return
    asked = asked_pairs(content)
    columns = range(len(combos[0]))
    sizes = columns if "SRLIP" in (name, str(more.get("promise", "")).upper()) else (0,)
    for some in itertools.chain.from_iterable(itertools.combinations(columns, k) for k in sizes):
        for shared in {tuple(combo[j] for j in some) for combo in combos}:
            inside = [tuple(combo[j] for j in some) == shared for combo in combos]
            here = [[w * among for w, among in zip(row, inside, strict=True)] for row in weights]
            everybody = [sum(column) for column in zip(*here, strict=True)]
            for one, other, *sides in asked:
                held = ([sum(column) for column in zip(*(here[s] for s in at), strict=True)] for at in (one, other))
                yield (*held, everybody, *(None if side is None else below(side) for side in sides))


def mixtures(weights, floor, most):
    """Each secret, and the priors on the secret at the corners of those that give each value at least the floor."""
    k = len(weights)
    given = [[Fraction(w, sum(row)) for w in row] for row in weights]
    for last in range(k):
        share = [floor + (1 - k * floor) * (t == last) for t in range(k)]
        prior = [sum(c * p for c, p in zip(share, column, strict=True)) for column in zip(*given, strict=True)]
        yield from ((given[s], prior, prior, most, None) for s in range(k) if s != last)


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
    """The largest ratio of chances of an output given two events that are compared, exactly; None where one is more
    than its pair allows."""
    labels = content["publish"][0]["labels"]
    combos = [tuple(c) for c in content["combinations"] or [[code] for code in range(len(labels))]]
    weights = rows_of(first_model(content["model"]))
    least = 0 if "tables" in content["model"] else 1
    follows = "after" in content["model"]
    wide = not follows and any(len(row) != len(combos) for row in weights)
    if len(set(combos)) < len(combos) or wide or any(min(row) < least for row in weights):
        raise ValueError("the model must have a positive weight for each secret and value")
    worst, robust = Fraction(1), content["promise"].get("robust")
    composable = content["promise"].get("composable")
    limit = None if composable is None else below(Fraction(composable))
    pairs = [
        ([box(event, everybody, robust) for event in (one, other)], up, down)
        for believed_weights in beliefs(content, combos)
        for one, other, everybody, up, down in events(content, [*combos, *[combos[0]] * follows], believed_weights)
    ]
    for listed in likelihoods(content, combos):
        if len(listed) != len(combos):
            raise ValueError("the mechanism must have a row for each value")
        chances = [*listed, *[0] * follows]
        if limit is not None and max(chances) > limit * min(chances):
            return None
        if any(chances):
            for boxes, up, down in pairs:
                (least, most), (others_least, others_most) = (extremes(*event, chances) for event in boxes)
                for above, under, allowed in ((most, others_least, up), (others_most, least, down)):
                    if allowed is not None and above > allowed * under:
                        return None
                    if allowed is not None and under:  # an output that nobody of these has says nothing among them
                        worst = max(worst, above / under)
    return worst


def main(path):
    """Check, and say what was found."""
    try:
        content = read(path)
        promise, model = content["promise"], content["model"]
        epsilon = promise["epsilon"]
        parts, whole = Fraction(epsilon) + Fraction(model["epsilon"]), Fraction(model["total_epsilon"])
        first = first_model(model)
        if Fraction(first["epsilon"]) != Fraction(model["epsilon"]):
            raise ValueError("the ε of the model must be that of the first release")
        if "each" in first and sum(Fraction(part["epsilon"]) for part in first["each"]) != Fraction(model["epsilon"]):
            raise ValueError("the ε of the tables of all secrets must add up to the model's")
        ratio = worst_ratio(content)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        print(f"{path}: not checked: {error}.")
        return 2
    if ratio is None:
        print(f"{path}: {promise['name']} ε = {epsilon:g} does NOT hold for the published model.")
        return 1
    if parts > whole:
        print(f"{path}: records and model have more than the whole ε = {float(whole):g}. It does NOT hold.")
        return 1
    print(f"{path}: {promise['name']} ε = {float(whole):g} about {' & '.join(content['secret']['columns'])} holds:")
    print(f"  {float(Fraction(model['epsilon'])):g} for the model, {epsilon:g} for the records")
    print(f"  (which use a factor of {float(ratio):.6g}).")
    if "after" in model:
        print(f"  It is about this release and {len(model['after']['files'])} before it together.")
    if promise.get("parameters"):
        print(f"  as it is stated, with {float(Fraction(model['epsilon'])):g} more for every pair of secrets:")
        print(f"  {json.dumps(promise['parameters'], ensure_ascii=False)}.")
    if "robust" in promise:
        print(f"  It also holds for odds that differ from the model's by a factor of {promise['robust']}.")
    if "composable" in promise:
        print(f"  It adds at most {promise['composable']:g} to other releases of these records.")
    delta = float(Fraction(model["delta"]))
    print(f"  δ = {delta:g}: one person's presence makes a label appear with at most this probability.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else (print(__doc__) or 2))
