"""How the code is written: names, sizes and where command-line options are mentioned. Limits are only ever lowered."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from benchmarks.flow import measure_flow

from tests.source_tree import Source, longest_import_chain, sources

ROOT = Path(__file__).parent.parent

REPEATED_CLASSES = 5
REPEATED_MODULES = 3
PARTICIPLES = 0.05  # of all functions
OPTIONS_OUTSIDE_CLI = 0
EXCUSES_IN_TESTS = 19
LINES_OF_A_FILE = 450
LINES, FILES = 58_490, 300  # of src
ENGINE_LINES, ENGINE_FILES = 7_870, 37
LONGEST_IMPORT_CHAIN = 30
FILES_ENTERED, PACKAGE_CHANGES, PROBLEMS_SOLVED = 130, 660, 1  # by one default release with all its pages
LONG_FILES = {
    "benchmarks/ablation.py",
}  # to split
WITHOUT_A_SUBJECT = {"utils", "util", "helpers", "common", "misc", "tools"}

# Past participles that do not end in -ed. Words that are also verbs or nouns (set, read, split, cut, bound) are none.
IRREGULAR = re.compile(
    "begun|bought|broken|brought|built|caught|chosen|done|drawn|driven|found|given|gone|grown|held|hidden|kept|known|lost|"
    "made|meant|met|paid|said|seen|sent|shown|spent|spoken|taken|thought|told|torn|understood|worn|written"
)
OTHERS_IN_ED = re.compile("bed|embed|exceed|feed|hundred|indeed|need|proceed|red|seed|speed|succeed")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def is_participle(word: str) -> bool:
    return bool(IRREGULAR.fullmatch(word)) or (word.endswith("ed") and not OTHERS_IN_ED.fullmatch(word))


def functions() -> Iterator[tuple[Source, str]]:
    """Every function and method with its module, but for those that Python names."""
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
                yield source, node.name


def repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_a_class_name_means_one_class() -> None:
    names = repeated(node.name for source in sources() for node in source.nodes if isinstance(node, ast.ClassDef))
    assert len(names) <= REPEATED_CLASSES, names


def test_a_module_name_means_one_module() -> None:
    names = repeated(source.path.stem for source in sources() if source.path.stem not in ("__init__", "__main__"))
    assert len(names) <= REPEATED_MODULES, names


def test_functions_are_named_by_verbs_or_quantities() -> None:
    named = list(functions())
    by_participle = []
    for source, name in named:
        first, *others = name.strip("_").split("_")
        if is_participle(first) or (others and is_participle(others[-1])):
            by_participle.append(f"{source.name}.{name}")
    assert len(by_participle) <= PARTICIPLES * len(named), by_participle


@pytest.mark.parametrize(
    ("word", "expected"),
    [("told", True), ("asked", True), ("drawn", True), ("seed", False), ("split", False), ("leak", False)],
)
def test_participles_are_recognised(word: str, expected: bool) -> None:
    assert is_participle(word) is expected


def test_command_line_options_are_mentioned_in_the_command_line_alone() -> None:
    mentions = [
        f"{source.name}:{number}"
        for source in sources()
        if source.package not in ("cli", "__main__")
        for number, line in enumerate(source.text.splitlines(), 1)
        if OPTION.search(line)
    ]
    assert len(mentions) <= OPTIONS_OUTSIDE_CLI, mentions


def test_files_can_be_read_in_one_sitting() -> None:
    folders = ("src", "tests", "benchmarks", "fuzz", "scripts")
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    lines = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in paths}
    assert {name: count for name, count in lines.items() if count > LINES_OF_A_FILE and name not in LONG_FILES} == {}


def test_the_source_gets_no_longer() -> None:
    each = list(sources())
    assert len(each) <= FILES
    assert sum(source.text.count("\n") for source in each) <= LINES
    engine = [source for source in each if source.package == "engine"]
    assert len(engine) <= ENGINE_FILES
    assert sum(source.text.count("\n") for source in engine) <= ENGINE_LINES


def test_the_longest_chain_of_imports_gets_no_longer() -> None:
    chain = longest_import_chain()
    assert len(chain) <= LONGEST_IMPORT_CHAIN, " → ".join(chain)


def test_the_data_of_a_release_wanders_no_further() -> None:
    flow = measure_flow()
    assert len(flow.files) <= FILES_ENTERED, sorted(flow.files)
    assert sum(flow.changes.values()) <= PACKAGE_CHANGES, flow.changes
    assert flow.problems <= PROBLEMS_SOLVED


def test_every_module_is_named_after_what_it_holds() -> None:
    assert [source.name for source in sources() if WITHOUT_A_SUBJECT & set(source.name.split("."))] == []


def excuses(*folders: str) -> list[str]:
    """Lines with a comment that switches ruff, mypy or coverage off, a test that is left out, or work put off."""
    pattern = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:|mypy:)|pytest\.mark\.(?:skip|xfail)|\bTODO\b|\bFIXME\b")
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_line_is_excused_from_a_check() -> None:
    assert excuses("src", "benchmarks", "fuzz", "scripts") == []
    assert len(excuses("tests")) <= EXCUSES_IN_TESTS, excuses("tests")
