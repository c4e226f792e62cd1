"""The public names: all there, all documented, imported when used, and no module in disguise."""

import importlib
import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType

import pytest

import privacyfunnel
from privacyfunnel.errors import PrivacyFunnelError

# What the three kinds of users are told to import; a name that goes is a change for all of them.
TOLD = """
errors PrivacyFunnelError InputError GuaranteeError
scan audit audit_matrix design design_file apply apply_file Applied Sanitiser
sanitise sanitise_file Release ReleaseSpec DesignResult
TableSource RowKey DomainFile Merge Bins Dialect Query MergeRare MergeSecrets Effort PublishedTable
estimate Estimates impute impute_file posterior combine regress
Joint LDP LIP SRLIP Promise Protocol entropy mutual_information
optimal Optimum randomised_response conditional_reporting curve Curve
Use Information Values Distance Statistics Balanced Workload funnel Funnel optimal_on_average OnAverage
seal SealedProtocol
"""


def test_the_public_names_are_those_that_users_are_told() -> None:
    assert sorted(privacyfunnel.__all__) == sorted(TOLD.split())
    assert len(set(privacyfunnel.__all__)) == len(privacyfunnel.__all__)


@pytest.mark.parametrize("name", privacyfunnel.__all__)
def test_every_public_name_is_there_is_listed_and_says_what_it_is(name: str) -> None:
    found = getattr(privacyfunnel, name)
    assert name in dir(privacyfunnel)
    assert isinstance(found, ModuleType) == (name == "errors")
    said = inspect.getdoc(found) or ""
    assert len(said) > 20
    assert not said.startswith(f"{name}(")  # what a dataclass says of itself
    if not isinstance(found, ModuleType):
        assert found.__name__ == name


def test_star_imports_and_unknown_names_behave() -> None:
    names: dict[str, object] = {}
    exec("from privacyfunnel import *", names)
    assert set(privacyfunnel.__all__) <= set(names)
    with pytest.raises(AttributeError, match="has no attribute 'optimum'"):
        _ = privacyfunnel.optimum


def test_a_room_is_a_module_whatever_was_imported_before() -> None:
    assert type(privacyfunnel) is ModuleType
    for room in ("designs.optimal.optimum", "designs.curve", "audits.scan", "release.design", "release.sanitise"):
        found = importlib.import_module(f"privacyfunnel.{room}")
        assert type(found) is ModuleType
    code = (
        "import privacyfunnel.designs.optimal.optimum as o, privacyfunnel.release.design as d, privacyfunnel as p; "
        "from types import ModuleType as M; "
        "assert type(o) is type(d) is M and callable(p.optimal) and callable(p.design) and callable(p.audit)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_error_of_ours_is_one_tree() -> None:
    kinds = [kind for kind in vars(privacyfunnel.errors).values() if inspect.isclass(kind)]
    assert all(issubclass(kind, PrivacyFunnelError) for kind in kinds if issubclass(kind, Exception))


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, privacyfunnel; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "scipy", "polars", "highspy", "matplotlib", "cryptography", "typer"} & set(found)


def test_the_reference_has_every_public_name() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    missing = [name for name in privacyfunnel.__all__ if not re.search(rf"[.`]{name}\b", page)]
    assert missing == []


@pytest.mark.parametrize("name", ["sanitise", "sanitise_file", "design", "design_file", "apply", "apply_file", "audit"])
def test_every_type_of_a_public_signature_can_be_imported(name: str) -> None:
    parameters = inspect.signature(getattr(privacyfunnel, name)).parameters.values()
    types = set(re.findall(r"\b[A-Z]\w+", " ".join(str(part.annotation) for part in parameters)))
    types -= {"Any", "None", "Sequence", "Mapping", "Path", "Callable", "Iterable"}
    assert types <= set(privacyfunnel.__all__)


@pytest.mark.parametrize("name", sorted(privacyfunnel.__all__))
def test_type_hints_of_public_names_can_be_read(name: str) -> None:
    found = getattr(privacyfunnel, name)
    public = [member for each, member in inspect.getmembers(found, inspect.isfunction) if not each.startswith("_")]
    for annotated in [found, *(public if inspect.isclass(found) else [])]:
        if callable(annotated):
            typing.get_type_hints(annotated)
