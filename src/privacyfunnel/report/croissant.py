"""A release as catalogues of data sets describe one: Croissant 1.0, with its vocabulary for responsible use.

It is public: columns, formats and a fingerprint of the table that is published, what was promised about the secret, and
what was not. Nothing in it depends on the rows but by what the public files say.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from privacyfunnel.release.release_files import STEM
from privacyfunnel.release.sanitise import Release
from privacyfunnel.report import statements
from privacyfunnel.report.statements import Occasion
from privacyfunnel.tables.readers.table_files import open_table, table_suffix

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
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
READ_AT_ONCE = 1 << 20  # bytes


def description(release: Release, occasion: Occasion) -> str:
    """The text of croissant.json, for a release whose table is a file."""
    table = Path(release.table)
    name = f"{STEM}{table_suffix(table)}"
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
                    "description": "The sanitised rows, in a random order."
                    if not release.kept_order
                    else "The sanitised rows, in the order of the table.",
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
                f"{secret}: not published; {release.sealed.promise.name} of ε = {release.sealed.promise.epsilon:g} is "
                "promised about it.",
                f"{columns}: randomised, and not protected by themselves.",
                *([f"{', '.join(release.kept)}: published as they are, unprotected."] if release.kept else []),
            ],
            "rai:dataManipulationProtocol": f"{how} Made with privacyfunnel.",
            "rai:dataLimitations": list(release.not_promised),
            "rai:dataUseCases": [statements.FOR_ANALYSTS],
            "rai:dataBiases": [
                "Values are randomised on purpose. Shares that are counted without regard to that are biased."
            ],
        },
        ensure_ascii=False,
        indent=2,
    )


def _field(column: str, file: str, release: Release) -> dict[str, Any]:
    published = [at.name for at in release.sealed.domain.attributes]
    about = "randomised" if column in published else "as it was" if column in release.kept else "an outcome of the draw"
    return {
        "@type": "cr:Field",
        "@id": f"rows/{column}",
        "name": column,
        "description": about,
        "dataType": "sc:Text",
        "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
    }


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(READ_AT_ONCE):
            found.update(piece)
    return found.hexdigest()
