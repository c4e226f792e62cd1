"""The text of a release: the section of CHANGELOG.md for a tag. Refused where tag, version and citation disagree.

python scripts/release_notes.py v0.1.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def read_version(root: Path = ROOT) -> str:
    """The version of the package, as its one source states it."""
    text = (root / "src" / "privacyfunnel" / "__init__.py").read_text(encoding="utf-8")
    return _one(r'^__version__ = "([^"]+)"$', text, "src/privacyfunnel/__init__.py")


def release_notes(tag: str, root: Path = ROOT) -> str:
    """The section of CHANGELOG.md for this tag.

    Raises
    ------
    ValueError
        If the tag, the version, CITATION.cff and CHANGELOG.md do not name the same version.
    """
    version = read_version(root)
    cited = _one(r"^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), "CITATION.cff")
    if (tag, cited) != (f"v{version}", version):
        message = f"tag, version and citation must agree; they are {tag}, {version} and {cited}."
        raise ValueError(message)
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return _one(rf"(?ms)^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changes, "CHANGELOG.md").strip()


def _one(pattern: str, text: str, name: str) -> str:
    found: list[str] = re.findall(pattern, text, flags=re.MULTILINE)
    if len(found) != 1:
        message = f"{name} must state the version once; it does {len(found)} times."
        raise ValueError(message)
    return found[0]


if __name__ == "__main__":
    print(release_notes(sys.argv[1]))
