"""Joints in which some secrets are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privacyfunnel.model.joint import Joint


def merge_secrets(joint: Joint, labels: Sequence[str]) -> Joint:
    """The joint whose secrets have these labels; secrets whose labels become equal are one.

    >>> merge_secrets(Joint.from_counts([[3, 1], [1, 0], [0, 2]]), ["a", "b", "b"]).weights
    array([[3, 1],
           [1, 2]])
    """
    different = tuple(dict.fromkeys(labels))
    weights = np.zeros((len(different), joint.a), dtype=joint.weights.dtype)
    np.add.at(weights, [different.index(label) for label in labels], joint.weights)
    return replace(joint, weights=weights, secrets=different)
