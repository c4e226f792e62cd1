"""Descriptions of a release for data catalogues: Croissant 1.0 with its responsible-AI vocabulary, and DCAT-AP 3
with what a release knows of HealthDCAT-AP: records, persons, purpose and contact, but no health category.

They are public. They state columns, formats and SHA-256 of the public files, the promise and its limits, and no figure
that depends on exact counts. Croissant is written last and lists every other file: an audit finds by it what somebody
added or changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from privacyfunnel.atomic_files import file_digest
from privacyfunnel.formatting import format_number
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import CROISSANT
from privacyfunnel.report import statements
from privacyfunnel.report.statements import Occasion
from privacyfunnel.tables.readers.table_files import open_table

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
    ".html": "text/html",
    ".json": "application/json",
    ".jsonld": "application/ld+json",
}
ANY_FORMAT = "application/octet-stream"
DCAT_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dpv": "https://w3id.org/dpv#",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "dct": "http://purl.org/dc/terms/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def croissant(release: Release, folder: Path, occasion: Occasion) -> str:
    """The text of croissant.json, for the files in the public folder."""
    name, promise = Path(release.table).name, release.design.sealed.promise
    whole = format_number(release.design.sealed.total_epsilon)
    secret, columns = statements.secret_name(release.design.sealed), statements.column_names(release.design.sealed)
    how = statements.publication_statement(release.design.sealed, drawn=False)
    names = sorted(path.name for path in folder.iterdir() if path.name != CROISSANT)
    return json.dumps(
        {
            "@context": CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": CONFORMS,
            "name": f"{columns}, sanitised",
            "description": f"{statements.meaning(release.design.sealed)} {how}",
            "datePublished": f"{occasion.when:%Y-%m-%d}",
            "version": "1.0.0",
            "isLiveDataset": False,
            "distribution": [
                {
                    "@type": "cr:FileObject",
                    "@id": each,
                    "name": each,
                    "contentUrl": each,
                    "encodingFormat": media_type(each),
                    "sha256": file_digest(folder / each),
                }
                for each in names
            ],
            "recordSet": [
                {
                    "@type": "cr:RecordSet",
                    "@id": "rows",
                    "name": "rows",
                    "field": [_field(column, name, release) for column in open_table(folder / name).columns],
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
    published = [at.name for at in release.design.sealed.domain.attributes]
    about = "randomised" if column in published else "unchanged" if column in release.kept else "outcome code"
    return {
        "@type": "cr:Field",
        "@id": f"rows/{column}",
        "name": column,
        "description": about,
        "dataType": "sc:Text",
        "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
    }


def dcat(release: Release, folder: Path, occasion: Occasion) -> str:
    """The text of dcat.jsonld: a data set and its distribution, the table, by addresses relative to the file."""
    sealed, name = release.design.sealed, Path(release.table).name
    columns = statements.column_names(sealed)
    day = {"@type": "xsd:date", "@value": f"{occasion.when:%Y-%m-%d}"}
    how = statements.publication_statement(sealed, drawn=False)
    table = {
        "@id": name,
        "@type": "dcat:Distribution",
        "dct:title": _english(name),
        "dcat:accessURL": {"@id": name},
        "dcat:downloadURL": {"@id": name},
        "dcat:mediaType": {"@id": f"https://www.iana.org/assignments/media-types/{media_type(name)}"},
        "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str((folder / name).stat().st_size)},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": file_digest(folder / name)},
        },
    }
    content = {
        "@context": DCAT_CONTEXT,
        "@id": "",
        "@type": "dcat:Dataset",
        "dct:title": _english(f"{columns}, sanitised"),
        "dct:description": _english(f"{statements.meaning(sealed)} {how}"),
        "dct:issued": day,
        "dcat:keyword": [_english(at.name) for at in sealed.domain.attributes],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": _english(f"{how} Made with privacyfunnel."),
        },
        "dcat:distribution": [table],
        **_health_fields(release),
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def _health_fields(release: Release) -> dict[str, Any]:
    """What HealthDCAT-AP adds, as far as the release knows it; one row of each person makes their number known."""
    spec, rows = release.spec, {"@type": "xsd:nonNegativeInteger", "@value": str(release.rows)}
    found: dict[str, Any] = {"healthdcatap:numberOfRecords": rows}
    if spec.person:
        found["healthdcatap:numberOfUniqueIndividuals"] = rows
    if spec.purpose:
        found["dpv:hasPurpose"] = {"@type": "dpv:Purpose", "dct:description": _english(spec.purpose)}
    if spec.contact:
        found["dcat:contactPoint"] = {"@type": "vcard:Kind", "vcard:fn": spec.contact}
    return found


def _english(text: str) -> dict[str, str]:
    return {"@language": "en", "@value": text}


def media_type(name: str) -> str:
    """The media type of a public file."""
    return FORMATS.get(Path(name).suffix, ANY_FORMAT)
