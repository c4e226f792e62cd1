"""What is handed out: a wheel, built from the sdist, that runs the demo in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

from tests.commands import LONGEST

ROOT = Path(__file__).parent.parent
INSTRUCTIONS = ["FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT"]


def run(*words: object, cwd: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [*map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean, timeout=LONGEST, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_wheel_made_from_the_sdist_installs_and_runs_the_demo(tmp_path: Path) -> None:
    """As `make wheel` makes it; what it depends on is borrowed from the environment of the tests."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert list((tmp_path / "dist").glob("*.tar.gz"))
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "privacyfunnel").rglob("*")}
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in source if name.endswith((".py", ".jinja", ".css", ".js", ".json", ".typed"))} <= inside

    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    installing = ["--quiet", "install", "--no-deps", "--no-index", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", python, *installing, wheel, cwd=tmp_path)
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    where = run(python, "-c", "import privacyfunnel; print(privacyfunnel.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(packages)

    told = run(tmp_path / "env" / "bin" / "privacyfunnel", "demo", "--into", "demo", cwd=tmp_path)
    assert "no guess grows by more than ×2.72" in told
    assert (tmp_path / "demo" / "out" / "owner" / "report.html").stat().st_size > 10_000


def test_the_container_installs_this_package_as_constrained_and_runs_it_without_rights() -> None:
    """No builder is at hand: what the file says is compared with what the package is."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    said = dict(line.split(" ", maxsplit=1) for line in lines if line and not line.startswith("#"))
    assert list(said) == INSTRUCTIONS
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert said["FROM"] == f"python:{project['requires-python'].removeprefix('>=')}-slim"
    assert json.loads(said["ENTRYPOINT"]) == list(project["scripts"])
    (extras,) = re.findall(r"/source\[(.*?)\]", said["RUN"])
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert "--constraint /source/constraints.txt" in said["RUN"]
    assert (ROOT / "constraints.txt").is_file()
    assert f"useradd {said['USER']}" in said["RUN"]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".git", ".venv"} <= set(ignored)
