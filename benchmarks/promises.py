"""Every promise on the pairs of columns of the paper's Adult experiments: information kept, gap and processor seconds.

python -m benchmarks promises
python -m benchmarks.promises occupation PML     the lines whose name has all of these words

Each is to be proved within 1e-6 nats, in seconds. Graded LDP gives neighbours in the order of labels ε = 1/2, and sums
of that to others, up to 1; the event is the first half of the secrets.
"""

import sys
import time

from benchmarks.pairs import PUBLISHED, SECRETS
from benchmarks.uses import SECONDS, adult
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.labelled_promises import Events, GradedLDP, InteriorPML
from privacyfunnel.model.promises import ALIP, LDP, LIP, PML, Promise

GAP = 1e-6  # nats


def promises(joint: Joint) -> dict[str, Promise]:
    """One of each kind, by what it is called here."""
    near = [
        (one, other, min(0.5 * (j - i), 1.0))
        for i, one in enumerate(joint.secrets)
        for j, other in enumerate(joint.secrets)
        if i < j
    ]
    return {
        "LIP(1)": LIP(1.0),
        "LDP(1)": LDP(1.0),
        "PML(1)": PML(1.0),
        "ALIP(1, 0.5)": ALIP(1.0, 0.5),
        "PML(1), floor 0.01": InteriorPML(1.0, 0.01),
        "graded LDP": GradedLDP.from_sizes(near),
        "event(1)": Events(1.0, (("first", joint.secrets[: joint.c // 2]),)),
    }


def main(words: list[str]) -> None:
    """Print every line, or those that are asked for."""
    for secret in SECRETS:
        for publish in PUBLISHED:
            joint = adult(secret, publish)
            for name, promise in promises(joint).items():
                line = f"{secret} × {publish} {name}"
                if not all(word in line for word in words):
                    continue
                begun = time.process_time()
                best = optimal(joint, promise, gap=GAP, time_limit=SECONDS)
                gap, worked = best.bound - best.utility, time.process_time() - begun
                print(f"{line:<52}{best.utility:8.4f} nats   gap {gap:.1e}   {worked:6.2f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
