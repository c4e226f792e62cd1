"""The version has one source; a release is refused where anything disagrees with it."""

from pathlib import Path

import pytest
from scripts.release_notes import read_version, release_notes

import privacyfunnel


def test_version_citation_and_changelog_agree() -> None:
    assert read_version() == privacyfunnel.__version__
    assert release_notes(f"v{privacyfunnel.__version__}")


def project(folder: Path, *, cited: str = "1.2.0", changes: str = "## 1.2.0\n\nnew\n\n## 1.1.0\n\nold\n") -> Path:
    (folder / "src" / "privacyfunnel").mkdir(parents=True)
    (folder / "src" / "privacyfunnel" / "__init__.py").write_text('__version__ = "1.2.0"\n', encoding="utf-8")
    (folder / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {cited}\n", encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(f"# Changes\n\n{changes}", encoding="utf-8")
    return folder


def test_the_text_of_a_release_is_its_own_section(tmp_path: Path) -> None:
    assert release_notes("v1.2.0", project(tmp_path)) == "new"


@pytest.mark.parametrize(
    ("tag", "changed", "sentence"),
    [
        ("v1.3.0", {}, "they are v1.3.0, 1.2.0 and 1.2.0"),
        ("v1.2.0", {"cited": "1.1.0"}, "they are v1.2.0, 1.2.0 and 1.1.0"),
        ("v1.2.0", {"changes": "## 1.1.0\n\nold\n"}, "CHANGELOG.md must state the version once; it does 0 times"),
    ],
)
def test_a_release_that_disagrees_with_itself_is_refused(
    tmp_path: Path, tag: str, changed: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        release_notes(tag, project(tmp_path, **changed))
