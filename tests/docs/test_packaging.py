"""What package indexes, citations and installers read agrees with the package."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_constraints_of_the_lowest_versions_are_those_of_the_project():
    extras = PROJECT["optional-dependencies"]
    needed, allowed = (
        {re.sub(r"\[.*\]", "", requirement).replace(">=", "==") for requirement in requirements}
        for requirements in (
            PROJECT["dependencies"] + extras["dask"],
            PROJECT["dependencies"] + extras["dask"] + extras["dev"],
        )
    )
    pins = {line for line in read("constraints/minima.txt").splitlines() if "==" in line}
    assert needed <= pins <= allowed
