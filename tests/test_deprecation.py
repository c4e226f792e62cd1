"""Deprecated names: old names of public members work, warn, and name what replaces them."""

from collections.abc import Iterator

import numpy as np
import pytest

from privacyfunnel import LIP, Information, Joint, Promise, Use, Workload, seal
from privacyfunnel.deprecation import DeprecatedAlias
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.comparisons import GroupPairs
from privacyfunnel.model.protocols.channel_protocol import Protocol

JOINT = Joint.from_counts([[3, 1], [1, 3]])
FLIP = Protocol(np.array([[0.6, 0.4], [0.4, 0.6]]))


@pytest.mark.parametrize("owner", [Promise, Joint, Protocol, Use, Workload, SealedProtocol])
def test_every_old_name_stands_for_a_member_that_is_there(owner: type) -> None:
    aliases = [alias for alias in vars(owner).values() if isinstance(alias, DeprecatedAlias)]
    assert aliases
    assert all(hasattr(owner, alias.replacement) or alias.replacement in owner.__annotations__ for alias in aliases)


def test_an_old_name_works_and_says_what_replaces_it() -> None:
    with pytest.warns(DeprecationWarning, match=r"^Promise.rows is deprecated; use Promise.constraints.$"):
        old = LIP(0.5).rows(JOINT)
    assert len(old) == len(LIP(0.5).constraints(JOINT))
    with pytest.warns(DeprecationWarning, match=r"use Joint.project"):
        assert (JOINT.onto([0]).weights == JOINT.weights).all()
    with pytest.warns(DeprecationWarning, match=r"use Use.full_name"):
        assert Information().called == "information"
    sealed = seal(FLIP, LIP(0.5), JOINT)
    with pytest.warns(DeprecationWarning, match=r"use SealedProtocol.mechanism"):
        assert sealed.law is sealed.mechanism


def test_a_promise_that_overrides_an_old_name_is_kept_as_before() -> None:
    with pytest.warns(DeprecationWarning, match=r"Promise.asked is deprecated; use Promise.group_pairs"):

        class Old(Promise, named=False):
            def asked(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
                return LIP(1.0).group_pairs(c, m, sees_secret)

    assert Old(0.5).leakage(JOINT, FLIP) == LIP(0.5).leakage(JOINT, FLIP)
