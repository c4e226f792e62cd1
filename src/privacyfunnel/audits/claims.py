"""Claims of a protocol file about utility: the information it keeps, and a bound that no protocol exceeds.

Neither concerns privacy, and readers judge a release by both. With the table the information is measured again, and the
optimum is solved again for some seconds: a protocol that keeps more than the stated bound refutes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, PrivacyFunnelError, SizeError
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint

SECONDS = 5.0  # for solving again
CLOSE = 1.5e-4  # nats: amounts of information are stated in four digits after the point
STANDARD_ERRORS = 10.0  # that a mean over rows may be off
PROVED = 1.5e-4  # nats: a bound that is proved again to within this is confirmed


@dataclass(frozen=True, slots=True)
class Claims:
    """The stated amounts of information in nats, and how far they were checked; none was refuted."""

    information: float  # stated
    bound: float | None  # stated
    is_measured: bool = False  # whether what is kept was measured again, and is as stated
    proved_bound: float | None = None  # a bound that was proved just now
    reason: str = ""  # why something was not checked

    @property
    def is_confirmed(self) -> bool:
        """Whether the stated bound follows from what was proved just now."""
        return self.bound is not None and self.proved_bound is not None and self.proved_bound <= self.bound + PROVED

    def __str__(self) -> str:
        kept = (
            f"{self.information:.4f} nats are kept: {'measured again' if self.is_measured else 'stated, not checked'}"
        )
        why = f" ({self.reason})" if self.reason else ""
        if self.bound is None:
            return f"{kept}{why}; nothing is stated about the best protocol"
        best = f"no protocol keeps more than {self.bound:.4f}"
        if self.is_confirmed:
            return f"{kept}; {best}: proved again"
        if self.proved_bound is None:
            return f"{kept}; {best}: stated, not checked{why}"
        return (
            f"{kept}; {best}: stated, not checked below {self.proved_bound:.4f}, which was proved in "
            f"{SECONDS:.0f} seconds"
        )


def check_claims(sealed: SealedProtocol, joint: Joint, mechanism: Mechanism, seconds: float = SECONDS) -> Claims:
    """Measure and solve again; `mechanism` is the protocol's on the inputs of `joint`.

    Where the published columns hold another amount of information than stated, the table is not the one that the
    claims are about, and none is checked: a promise may hold for many tables.

    Raises
    ------
    GuaranteeError
        If the file claims to keep another amount than it does, or a bound that a protocol exceeds.
    """
    stated = Claims(sealed.information, sealed.bound)
    mechanism, joint = sealed.certified_inputs(
        mechanism, joint
    )  # what a private design states is about its noisy counts
    if abs(entropy(joint.p_x) - sealed.entropy) > CLOSE:
        return replace(stated, reason="the file was made for other rows")
    kept = _measure_information(sealed, joint, mechanism)
    if kept is not None and abs(kept - sealed.information) > CLOSE:
        raise GuaranteeError(
            f"the protocol file must state how much is kept of this table, {kept:.6g} nats; it states "
            f"{sealed.information:.6g}. It was altered: make it again."
        )
    known = replace(stated, is_measured=kept is not None, reason="" if kept is not None else "it is a mean over rows")
    if sealed.bound is None:
        return known
    try:
        found = optimal(joint, sealed.promise, sees_secret=sealed.sees_secret, time_limit=seconds)
    except PrivacyFunnelError as error:
        return replace(known, reason=f"solving again ended in a {type(error).__name__}")
    if found.utility > sealed.bound + CLOSE:
        raise GuaranteeError(
            f"the protocol file states that no protocol keeps more than {sealed.bound:.6g} nats; one that keeps the "
            f"promise and {found.utility:.6g} nats was found. The file was altered: make it again."
        )
    if sealed.information - STANDARD_ERRORS * sealed.information_error > found.bound + CLOSE:
        raise GuaranteeError(
            f"no protocol that keeps the promise keeps more than {found.bound:.6g} nats of this table; the protocol "
            f"file states that it keeps {sealed.information:.6g}. The file was altered: make it again."
        )
    return replace(known, proved_bound=found.bound)


def check_model_claims(sealed: SealedProtocol) -> Claims:
    """The same for a protocol with a published model, from its file alone."""
    if not sealed.mechanism.lists_inputs:
        return Claims(sealed.information, sealed.bound, reason="it is a mean over simulated records")
    return check_claims(sealed, sealed.model_joint, sealed.mechanism)


def _measure_information(sealed: SealedProtocol, joint: Joint, mechanism: Mechanism) -> float | None:
    """What is kept; None where that is only known as a mean over rows, or would take too long."""
    if sealed.information_error > 0:
        return None
    try:
        return mechanism.protocol.mutual_information(joint)
    except SizeError:
        return None
