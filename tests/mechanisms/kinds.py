"""A sealed protocol of every kind of law, over one small table, and what each does written out in full."""

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP

ROWS = 4000
STREAM = KeyStream.from_seed(11)
JOINT = Joint.from_counts(
    [[[60, 30], [25, 5], [30, 20]], [[20, 40], [35, 15], [10, 60]]],
    secret=["ill", "well"],
    values=[["red", "green", "blue"], ["large", "red"]],  # a label may occur in two columns
    names=["colour", "size"],
    secret_name="health",
)
VALUES = np.random.default_rng(5).choice(JOINT.a, p=JOINT.p_x, size=ROWS)
SECRETS = np.array(
    [np.random.default_rng(i).choice(JOINT.c, p=JOINT.p_s_given_x[:, x]) for i, x in enumerate(VALUES.tolist())]
)


def _channel() -> SealedProtocol:
    return seal(randomised_response(JOINT, LIP(0.3)), LIP(0.3), JOINT)


def _optimum() -> SealedProtocol:
    return seal(optimal(JOINT, LIP(0.2)).protocol, LIP(0.2), JOINT)


def _seeing() -> SealedProtocol:
    return seal(conditional_reporting(JOINT, LIP(0.2)), LIP(0.2), JOINT)


MAKERS: dict[str, Callable[[], SealedProtocol]] = {
    "channel": _channel,
    "optimum": _optimum,
    "channel that sees the secret": _seeing,
}


@cache
def sealed_of(kind: str) -> SealedProtocol:
    return MAKERS[kind]()


def codes_for(law: Mechanism) -> IntArray:
    """The rows of the table as inputs of the law."""
    return SECRETS * JOINT.a + VALUES if law.sees_secret else VALUES


def every_row(law: Mechanism) -> NDArray[np.int64]:
    """Every row that the law could draw, or could not."""
    if law.table_protocol is not None:
        return np.repeat(np.arange(len(law.table_protocol.outputs))[:, None], len(law.columns), axis=1)
    return np.array(list(product(*(range(len(labels)) for labels in law.columns))))


def chances(law: Mechanism, drawn: NDArray[np.int64]) -> FloatArray:
    """P(drawn row | input), rows × inputs, from the law's own observation model."""
    shown = law.observation_codes(drawn)
    return np.where(shown >= 0, law.observation()[:, shown[:, 0]].T, 0.0)
