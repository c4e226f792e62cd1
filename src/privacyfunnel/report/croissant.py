"""The description of a release for data catalogues: Croissant 1.0 with its responsible-AI vocabulary.

It is public. It states columns, format and SHA-256 of the published table, the promise and its limits, and no figure
that depends on exact counts.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from privacyfunnel.formatting import format_number
from privacyfunnel.release.sanitise import Release
from privacyfunnel.report import statements
from privacyfunnel.report.statements import Occasion
from privacyfunnel.tables.readers.formats import STEM
from privacyfunnel.tables.readers.table_files import open_table, table_suffix

_TERMS = """citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes isLiveDataset
jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source subField
transform"""
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
CONFORMS = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
FORMATS = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".gz": "application/gzip",
    ".parquet": "application/x-parquet",
    ".arrow": "application/vnd.apache.arrow.file",
}
ANY_FORMAT = "application/octet-stream"


def description(release: Release, occasion: Occasion) -> str:
    """The text of croissant.json, for a release in a file."""
    table = Path(release.table)
    name, promise = f"{STEM}{table_suffix(table)}", release.sealed.promise
    whole = format_number(release.sealed.total_epsilon)
    secret, columns = statements.secret_name(release.sealed), statements.column_names(release.sealed)
    how = statements.publication_statement(release.sealed, drawn=False)
    return json.dumps(
        {
            "@context": CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": CONFORMS,
            "name": f"{columns}, sanitised",
            "description": f"{statements.meaning(release.sealed)} {how}",
            "datePublished": f"{occasion.when:%Y-%m-%d}",
            "version": "1.0.0",
            "isLiveDataset": False,
            "distribution": [
                {
                    "@type": "cr:FileObject",
                    "@id": name,
                    "name": name,
                    "description": f"The sanitised rows, {'in table order' if release.kept_order else 'shuffled'}.",
                    "contentUrl": name,
                    "encodingFormat": FORMATS.get(table.suffix, ANY_FORMAT),
                    "sha256": _sha256(table),
                }
            ],
            "recordSet": [
                {
                    "@type": "cr:RecordSet",
                    "@id": "rows",
                    "name": "rows",
                    "field": [_field(column, name, release) for column in open_table(table).columns],
                }
            ],
            "rai:personalSensitiveInformation": [
                f"{secret}: not published; {promise.name} with ε = {whole} is promised.",
                f"{columns}: randomised, not protected themselves.",
                *([f"{', '.join(release.kept)}: published unchanged."] if release.kept else []),
            ],
            "rai:dataManipulationProtocol": f"{how} Made with privacyfunnel.",
            "rai:dataLimitations": [occasion.wording(sentence) for sentence in release.not_promised],
            "rai:dataUseCases": [statements.FOR_ANALYSTS],
            "rai:dataBiases": ["Values are randomised on purpose. Shares counted directly from them are biased."],
        },
        ensure_ascii=False,
        indent=2,
    )


def _field(column: str, file: str, release: Release) -> dict[str, Any]:
    published = [at.name for at in release.sealed.domain.attributes]
    about = "randomised" if column in published else "unchanged" if column in release.kept else "outcome code"
    return {
        "@type": "cr:Field",
        "@id": f"rows/{column}",
        "name": column,
        "description": about,
        "dataType": "sc:Text",
        "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
