"""What a mechanism and its codebook may give away, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privacyfunnel.formatting import format_epsilon, format_factor, format_number
from privacyfunnel.hints import hint
from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.model.published.table_model import PublishedModel


def model_scope_statement(sealed: SealedProtocol) -> str:
    """Whom a promise by a published model is about."""
    secret, odds = sealed.secret_text, sealed.promise.odds
    also = "" if odds is None else f", and to {odds.people('it')}"
    if sealed.follows:
        columns = format_names([at.name for at in sealed.domain.attributes[1:]])
        also = (
            f", and that {secret} is what it was in earlier releases, and {columns} what it was in the last, or "
            "another value that goes with it as in the model"
        )
    return (
        f"The promise is to whoever believes the published model of {secret}{also}; whoever knows better, such as the "
        "table's exact frequencies, may learn more."
    )


def _model_statements(sealed: SealedProtocol, model: PublishedModel, secret: str, spent: float) -> list[str]:
    design, records = (format_number(float(each)) for each in (model.epsilon, model.total - model.epsilon))
    whole = format_factor(float(model.total) + spent)
    design += f" and {format_epsilon(spent)} for designs of the same rows before it" if spent else ""
    files = f"All public files{f' of this release and of {sealed.follows} before it' if sealed.follows else ''}"
    found = [
        f"{files} together move what somebody who believes the model and knows all other rows thinks of a "
        f"person's {secret} by ×{whole} at most (ε = {design} for the model, {records} for the records)."
    ]
    if model.delta:
        rest = " Values with few rows are not named: they count as 'other', or as the commonest value of their column."
        of = rest if sealed.domain.rest else ""
        found.append(
            f"δ = {float(model.delta):.0e}: one person's presence makes a label appear with at most this probability."
            f"{of} Rare values of {secret} are not in the model, which treats them as average: nothing is promised "
            "about them."
        )
    if model.pooled:
        found.append(
            f"Values of {secret} with few rows are one group in the model ({format_names(model.pooled)}): nothing is "
            "promised that tells them apart."
        )
    return found


def design_statements(sealed: SealedProtocol, *, to_owner: bool, spent: float = 0.0) -> list[str]:
    """What the protocol file itself, and the codebook that was computed from it, may give away, in a sentence.

    `spent` is the ε of private designs for the same rows before it.
    """
    promise, secret, codebook = sealed.promise, sealed.secret_text, bool(sealed.outcomes)
    if sealed.model is not None:
        return _model_statements(sealed, sealed.model, secret, spent)
    made = "protocol.json and codebook.csv were made" if codebook else "protocol.json was made"
    they = "them" if codebook else "it"
    people = promise.population
    design = None if people is None else people.rule.design_epsilon
    if people is None or design is None:
        advice = f" Only you can read {they}; give {they} away only if nobody knows so much, or use "
        advice += f"{hint('prior', 'model')}."
        return [
            f"{made} from the counts themselves: whoever has {they} and knows all other rows can work out a person's "
            f"{secret}, and even the table alone is not protected against them.{advice if to_owner else ''}"
        ]
    most = promise.epsilon + float(design) + spent
    noise = f"{float(design):g}"
    noise += f", after designs of ε = {format_epsilon(spent)} for the same rows" if spent else ""
    return [
        f"{made} from counts with noise of ε = {noise}: together with the rows this moves what somebody "
        f"who knows all other rows believes about a person's {secret} by e^{most:g} at most, if these rows are an "
        f"independent sample of people, with confidence {people.confidence:.0%}. Labels and bins of the domain are "
        "public."
    ]


def share_statements(sealed: SealedProtocol) -> list[str]:
    """What exact shares give away, in a sentence; none where there are none."""
    if sealed.shares is None:
        return []
    columns, secret = " & ".join(at.name for at in sealed.domain.attributes), sealed.secret_text
    few = min(int(counts[counts > 0].min()) for counts in sealed.shares.counts)
    return [
        f"The exact shares of {columns} are published in protocol.json, down to {few:,} row{'s' if few > 1 else ''}: "
        f"whoever knows {columns} of everybody else learns that of the last person, and what it says about {secret}, "
        "however small ε is."
    ]
