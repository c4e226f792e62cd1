"""The source as tests look at it: every module parsed once, and which module imports which."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import privacyfunnel

PACKAGE = Path(privacyfunnel.__file__).parent


@dataclass(frozen=True, eq=False)
class Source:
    """One module: its dotted name below the package, its text and its syntax tree."""

    name: str
    path: Path
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(ast.parse(self.text)))

    @property
    def package(self) -> str:
        """The package of the module; what `python -m` starts is `__main__`, wherever it is."""
        return "__main__" if self.name.endswith("__main__") else self.name.split(".", maxsplit=1)[0]

    @cached_property
    def imports(self) -> tuple[str, ...]:
        """Dotted names imported anywhere in the module, also inside functions and for types alone."""
        return tuple(self._imports())

    def _imports(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                assert node.level == 0, f"{self.name} has a relative import"
                if node.module == "privacyfunnel":
                    yield from (f"privacyfunnel.{alias.name}" for alias in node.names if alias.name != "__version__")
                else:
                    yield node.module
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


@cache
def sources() -> tuple[Source, ...]:
    """Every module of the package, in the order of their paths; the package itself has no name."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found.append(Source(name, path, path.read_text(encoding="utf-8")))
    return tuple(found)


@cache
def import_graph() -> dict[str, frozenset[str]]:
    """For each module the modules of the package that it imports. The package's own list of names is left out."""
    names = {source.name for source in sources()}
    graph = {}
    for source in sources():
        if source.name:
            ours = (name.removeprefix("privacyfunnel.") for name in source.imports if name.startswith("privacyfunnel."))
            known = (name if name in names else name.rpartition(".")[0] for name in ours)  # `from package import name`
            graph[source.name] = frozenset(known) - {source.name}
    return graph


def import_cycle() -> tuple[str, ...]:
    """A path of imports that ends where it begins, or nothing."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
        if name in path:
            return (*path[path.index(name) :], name)
        if name not in done:
            for other in sorted(import_graph().get(name, ())):
                if cycle := visit(other, (*path, name)):
                    return cycle
            done.add(name)
        return ()

    return next((cycle for name in sorted(import_graph()) if (cycle := visit(name, ()))), ())


def longest_import_chain() -> tuple[str, ...]:
    """The longest path of imports; there must be no cycle."""

    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max(map(chain, sorted(import_graph().get(name, ()))), key=len, default=()))

    return max(map(chain, sorted(import_graph())), key=len)
