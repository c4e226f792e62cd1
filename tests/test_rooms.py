"""The rooms: imports go down the flow of data and never back, also inside functions; heavy libraries have one room."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import privacyfunnel

ROOT = Path(privacyfunnel.__file__).parent

# A room may import from rooms before its own line, from its own line's rooms never, and from itself always.
FLOW: tuple[tuple[str, ...], ...] = (
    ("hints",),
    ("arrays", "errors"),
    ("tables",),
    ("notebook_html",),
    ("model",),
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
PROMISES = {"LIP", "LDP", "SRLIP", "PriorsPromise", "Promise"}
RANK = {room: rank for rank, rooms in enumerate(FLOW) for room in rooms}
HEAVY = {
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


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module below the package, by its dotted name."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    """The dotted names that a module imports anywhere, also inside functions; for types alone they count too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports are absolute"
            if node.module == "privacyfunnel":
                yield from (f"privacyfunnel.{alias.name}" for alias in node.names if alias.name != "__version__")
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room(name: str) -> str:
    """The room of a module below the package; what `python -m` finds in a room is a door of the house."""
    return "__main__" if name.endswith("__main__") else name.split(".", maxsplit=1)[0]


def edges() -> Iterator[tuple[str, str]]:
    """Pairs of a module and a module of ours that it imports."""
    for name, tree in modules():
        if name:  # the package itself is above all rooms: it names what is public
            for other in imported(tree):
                if other.startswith("privacyfunnel."):
                    yield name, other.removeprefix("privacyfunnel.")


def test_every_room_is_in_the_plan() -> None:
    assert {room(name) for name, _ in modules() if name} == set(RANK)


def test_imports_never_go_back() -> None:
    back = [
        f"{one} imports {other}"
        for one, other in edges()
        if room(one) != room(other) and RANK[room(other)] >= RANK[room(one)]
    ]
    assert back == []


def test_no_module_imports_itself_by_a_detour() -> None:
    graph: dict[str, set[str]] = {}
    names = {name for name, _ in modules()}
    for one, other in edges():
        known = other if other in names else other.rpartition(".")[0]  # `from privacyfunnel.room import name`
        graph.setdefault(one, set()).add(known)
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(graph.get(name, ())):
                if other != name:
                    visit(other, (*path, name))
            done.add(name)

    for name in sorted(names):
        visit(name, ())


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_a_heavy_library_is_imported_in_its_rooms_alone(library: str) -> None:
    users = {room(name) for name, tree in modules() for other in imported(tree) if other.split(".")[0] == library}
    assert users <= HEAVY[library], f"{library} is imported in {', '.join(sorted(users - HEAVY[library]))}"


def test_nobody_asks_which_kind_a_law_or_a_promise_is() -> None:
    asked = []
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                kinds = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                if any(kind.endswith("Law") or kind in PROMISES for kind in kinds):
                    asked.append(f"{name}:{node.lineno}")
    assert asked == []


def test_there_is_no_room_for_whatever_has_no_room() -> None:
    assert not [name for name, _ in modules() if set(name.split(".")) & {"utils", "helpers", "common", "misc"}]
