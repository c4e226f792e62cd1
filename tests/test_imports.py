"""The import graph: packages import downwards only, also inside functions; a heavy library has its packages."""

import ast

import pytest

from tests.source_tree import import_cycle, import_graph, sources

# A package may import packages of earlier lines and itself, never another one of its own line.
FLOW: tuple[tuple[str, ...], ...] = (
    ("formatting", "hints"),
    ("arrays", "errors", "locks"),
    ("atomic_files", "names", "plugins"),
    ("tables", "model"),
    ("engine", "mechanisms"),
    ("designs",),
    ("spec",),
    ("release",),
    ("audits", "estimation", "spark"),
    ("report",),
    ("experiments", "studio"),
    ("cli",),
    ("__main__",),
)
WITHOUT_TABLES = ("model", "engine", "mechanisms", "designs")  # the theory, and what is made of counts
PROMISES = {"LIP", "LDP", "SRLIP", "PriorsPromise", "Promise"}
RANK = {package: rank for rank, packages in enumerate(FLOW) for package in packages}
HEAVY = {
    "flint": {"model"},
    "highspy": {"engine"},
    "polars": {"tables", "release", "estimation", "audits", "spark"},
    "narwhals": {"tables"},
    "cryptography": {"mechanisms"},
    "matplotlib": {"report", "experiments"},
    "jinja2": {"report", "studio"},
    "starlette": {"studio"},
    "uvicorn": {"studio"},
    "typer": {"cli"},
    "rich": {"cli"},
    "opendp": {"model"},
    "pyspark": {"spark"},
}


def package(name: str) -> str:
    """The package of a module, by its dotted name."""
    return "__main__" if name.endswith("__main__") else name.split(".", maxsplit=1)[0]


def test_every_package_is_in_the_plan() -> None:
    assert {source.package for source in sources() if source.name} == set(RANK)


def test_packages_import_downwards_only() -> None:
    back = [
        f"{one} imports {other}"
        for one, others in import_graph().items()
        for other in sorted(others)
        if package(one) != package(other) and RANK[package(other)] >= RANK[package(one)]
    ]
    assert back == []


def test_designs_and_mechanisms_know_no_table() -> None:
    known = [
        f"{one} imports {other}"
        for one, others in import_graph().items()
        for other in others
        if package(one) in WITHOUT_TABLES and package(other) == "tables"
    ]
    assert known == []


def test_no_module_imports_itself_by_a_detour() -> None:
    assert import_cycle() == ()


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_a_heavy_library_is_imported_in_its_packages_alone(library: str) -> None:
    users = {source.package for source in sources() for name in source.imports if name.split(".")[0] == library}
    assert users <= HEAVY[library], f"{library} is imported in {', '.join(sorted(users - HEAVY[library]))}"


def test_no_module_hides_an_import_from_the_graph() -> None:
    """A part may ask the package itself, which is above all parts; never another part by its path."""
    hidden = [
        f"{source.name}:{node.lineno}"
        for source in sources()
        for node in source.nodes
        if isinstance(node, ast.Call) and source.name
        if ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")
        if ast.unparse(node.args[0]).strip("f'\"").startswith("privacyfunnel.")
    ]
    assert hidden == []


def test_no_module_asks_which_kind_a_mechanism_or_a_promise_is() -> None:
    asking = []
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                kinds = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                if any(kind.endswith(("Law", "Mechanism")) or kind in PROMISES for kind in kinds):
                    asking.append(f"{source.name}:{node.lineno}")
    assert asking == []
