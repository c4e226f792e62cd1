"""What can be measured under a promise: sanitisation protocols of whatever shape."""

from typing import Protocol as Shape

from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint


class Comparable(Shape):
    """What a promise and an information measure need of a sanitisation protocol, of whatever shape."""

    @property
    def sees_secret(self) -> bool: ...

    def worst(self, comparisons: Comparisons) -> Leak:
        """The output and pair of events with the largest log-ratio."""

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """The same where only a set of distributions is known for each event: the largest over all their members."""

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats."""
