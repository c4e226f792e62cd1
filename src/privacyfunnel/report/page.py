"""Pictures and words to one HTML page that needs nothing but itself."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from privacyfunnel.audits.side_channels import SideChannel, side_channel
from privacyfunnel.designs.methods import Effort
from privacyfunnel.errors import ParameterError, SizeError, SolverError
from privacyfunnel.estimation import Estimates, estimate
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.release.files import Page
from privacyfunnel.release.sanitise import Release
from privacyfunnel.report import OWNERS, PUBLIC, numbers, pictures
from privacyfunnel.tables.names import listing

LARGEST = 700.0  # ε: e to the power of more is beyond all floats
MEANING = {
    "LIP": "No published record moves anybody's belief about {secret}, from what it is for a person picked at random, "
    "by more than a factor of {factor}, in either direction.",
    "LDP": "Every published record is almost as likely for one value of {secret} as for any other: the chances differ "
    "by at most a factor of {factor}.",
    "SRLIP": "No published record moves anybody's belief about {secret} by more than a factor of {factor}, in either "
    "direction, whichever of the published attributes they knew before.",
}
ANY_MEANING = (
    "Of any two groups of people that {promise} compares, a published record is almost as likely for one as for the "
    "other: the chances differ by at most a factor of {factor}."
)
SETS = (
    "Each record is published as a set of values: its own with chance one half, each other one by a "
    "draw of its own. The sets are too many to be drawn here."
)


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """What the page says of the occasion: when, from what, and by which command."""

    when: datetime
    source: str
    command: str


def pages(
    release: Release,
    occasion: Occasion,
    *,
    owners: bool = True,
    public: bool = False,
    watch: Callable[[str], None] | None = None,
) -> Iterator[Page]:
    """The owner's page, for their eyes only, and the public one, as asked for."""
    if owners:
        yield Page(OWNERS, owner_page(release, occasion, watch=watch), owners=True)
    if public:
        yield Page(PUBLIC, public_page(release, occasion))


def owner_page(
    release: Release,
    occasion: Occasion,
    *,
    effort: Effort = numbers.LOOSE,
    watch: Callable[[str], None] | None = None,
) -> str:
    """The report for the owner of the data. It shows figures about the secret and is not for publication."""
    say = watch or (lambda doing: None)
    sealed, joint = release.sealed, release.joint
    if joint is None:
        raise ParameterError("The owner's report needs the counts of the table; this release carries none.")
    say("drawing the trade-off")
    curve = numbers.trade_off_curve(joint, sealed, effort, release.known)
    say("estimating back")
    estimates = _estimates(release)
    say("drawing the report")
    shown, seen, beliefs = (
        numbers.outputs(joint, sealed),
        numbers.attacker(joint, sealed),
        numbers.beliefs(joint, sealed),
    )
    columns = [(pictures.column_picture(column), column.notes) for column in numbers.columns(joint, sealed, estimates)]
    return _page(
        **_shared(release),
        owner=True,
        title=f"Publishing {_columns(release)} without giving away {_secret(release)}",
        sentence=pictures.beliefs_sentence(beliefs[0], _secret(release)),
        curve=curve and pictures.curve_picture(curve, release.method, sealed.promise.epsilon, sealed.information),
        outputs=[pictures.outputs_picture(shown), pictures.channel_picture(shown)] if shown else [],
        left_out=shown.left_out if shown else 0,
        unchanged=f"{100 * release.unchanged:.1f} %",
        attacker=pictures.attacker_picture(seen, sealed.epsilon) if seen else None,
        side=_side(side_channel(joint, sealed.law), release),
        columns=columns,
        associations=numbers.associations(joint, sealed),
        beliefs=beliefs,
        provenance=_provenance(release, occasion),
        command=occasion.command,
    )


def public_page(release: Release, occasion: Occasion) -> str:
    """A page for everybody: nothing on it that is not in the public protocol."""
    sealed = release.sealed
    channel = _public_channel(release)
    return _page(
        **_shared(release),
        owner=False,
        title=f"{_columns(release)}: a sanitised table",
        sentence="",
        curve=None,
        outputs=[pictures.channel_picture(channel)] if channel else [],
        left_out=channel.left_out if channel else 0,
        unchanged="",
        attacker=None,
        side="",
        columns=[],
        associations=(),
        beliefs=(),
        provenance=[
            ("published columns", _columns(release)),
            ("secret columns", ", ".join(sealed.domain.secret_columns)),
            ("made with", f"privacyfunnel {version('privacyfunnel')}"),
            ("date", f"{occasion.when:%Y-%m-%d}"),
            ("to use it", "privacyfunnel estimate protocol.json sanitised.csv"),
        ],
        command="",
    )


def _page(**said: Any) -> str:
    environment = Environment(
        loader=PackageLoader("privacyfunnel", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html.jinja").render(**said)


def _nats(sealed: SealedProtocol) -> str:
    """What is kept of what there is; a mean over the rows has a standard error."""
    error = f" ± {sealed.information_error:.4f} (standard error over the rows)" if sealed.information_error else ""
    return f"{sealed.information:.4f}{error} of {sealed.entropy:.4f} nats"


def _shared(release: Release) -> dict[str, Any]:
    sealed = release.sealed
    secret, columns, promise = _secret(release), _columns(release), sealed.promise.name
    epsilon = sealed.promise.epsilon
    factor = f"{math.ceil(math.exp(epsilon) * 100 - 1e-9) / 100:g}" if epsilon < LARGEST else f"e^{epsilon:g}"
    kept = f"{100 * release.share_kept:.1f} %"
    facts = [
        ("promised", f"ε = {sealed.promise.epsilon:g}", sealed.promise.name),
        ("certified", f"ε = {sealed.epsilon:.6g}", f"{sealed.law.checked}, on the integers that were drawn from"),
        (
            "information kept",
            kept,
            _nats(sealed),
        ),
    ]
    if sealed.bound is not None:
        share = f"{100 * sealed.bound / sealed.entropy:.1f} %" if sealed.entropy else "–"
        facts.append(
            ("best possible", share, f"proved: none that looks at the same keeps more than {sealed.bound:.4f} nats")
        )
    return {
        "secret": secret,
        "for_publication": sealed.for_publication,
        "meaning": MEANING.get(promise, ANY_MEANING).format(secret=secret, factor=factor, promise=promise),
        "facts": facts,
        "not_promised": release.not_promised,
        "no_outputs": SETS
        if sealed.law.members
        else f"The outputs of {release.method} over {columns} are too many to be drawn here.",
    }


def _estimates(release: Release) -> Estimates | None:
    try:
        return estimate(release.sealed, release.table)
    except (ParameterError, SizeError, SolverError):  # the report says what it can; the release stands without it
        return None


def _side(side: SideChannel | None, release: Release) -> str:
    if side is None:
        return ""
    limit = "up to" if side.exact else "at least"
    size = "without bound" if math.isinf(side.epsilon) else f"{limit} ε = {side.epsilon:.3g}"
    promised = release.sealed.promise.guards_known_attributes
    covered = "This is covered by the promise." if promised else "The promise does not cover this."
    return f"Someone who knows more can learn more, {size}: {side.words}. {covered}"


def _public_channel(release: Release) -> numbers.Outputs | None:
    """The channel as the protocol file states it; no prior, so no posterior."""
    sealed = release.sealed
    listed = sealed.law.listed
    if listed is None:
        return None
    channel = listed.channel if sealed.induced is None else sealed.induced
    labels = [
        np.array(at.labels, dtype=object)[sealed.domain.combos[:, j]] for j, at in enumerate(sealed.domain.attributes)
    ]
    shown = np.arange(channel.shape[1])[: numbers.SHOWN_OUTPUTS]
    return numbers.Outputs(
        labels=tuple(numbers.text(listed.outputs[y]) for y in shown),
        share=np.full(len(shown), np.nan),
        posterior=np.full((len(shown), channel.shape[0]), np.nan),
        channel=channel[:, shown],
        values=tuple(" & ".join(parts) for parts in zip(*labels, strict=True)),
        left_out=channel.shape[1] - len(shown),
    )


def _provenance(release: Release, occasion: Occasion) -> list[tuple[str, str]]:
    sealed = release.sealed
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "highspy", "polars", "cryptography"))
    return [
        ("table", occasion.source),
        ("records", f"{release.rows:,}"),
        ("secret", ", ".join(sealed.domain.secret_columns)),
        ("published", _columns(release)),
        ("kept as they are, unprotected", listing(release.kept) or "none"),
        ("dropped", listing(release.dropped) or "none"),
        ("method", release.method + (", which looks at the secret" if sealed.sees_secret else "")),
        *([("because", release.reason)] if release.reason else []),
        *([("sparseness", release.sparse)] if release.sparse else []),
        ("date", f"{occasion.when:%Y-%m-%d %H:%M %Z}".strip()),
        ("made with", f"privacyfunnel {version('privacyfunnel')}, Python {platform.python_version()}, {libraries}"),
    ]


def _secret(release: Release) -> str:
    return " & ".join(release.sealed.domain.secret_columns)


def _columns(release: Release) -> str:
    return ", ".join(at.name for at in release.sealed.domain.attributes)
