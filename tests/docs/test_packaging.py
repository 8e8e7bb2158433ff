"""What package indexes, citations and installers read agrees with the package."""

import re
import tomllib
from pathlib import Path

import pytest

import bayesnb

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = "https://code.example/a/b"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_and_one_date():
    version, date = re.search(r"^## \[([\d.]+)\] - (\d{4}-\d\d-\d\d)$", read("CHANGELOG.md"), re.MULTILINE).groups()
    citation = dict(re.findall(r"^([\w-]+): *\"?([^\"\n]+)", read("CITATION.cff"), re.MULTILINE))
    assert PROJECT["version"] == bayesnb.__version__ == citation["version"] == version
    assert citation["date-released"] == date
    assert citation["license"] == PROJECT["license"]
    assert citation.get("repository-code") == PROJECT.get("urls", {}).get("Repository")


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


def test_settings_of_other_tools_are_valid_yaml():
    yaml = pytest.importorskip("yaml")
    files = [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
    assert all(isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict) for path in files)


@pytest.mark.parametrize("repository", [REPOSITORY, None])
def test_links_of_the_readme_on_a_package_index(repository):
    pytest.importorskip("hatchling")
    namespace = {}
    exec(compile(read("hatch_build.py"), "hatch_build.py", "exec"), namespace)
    text = read("README.md")
    shown = namespace["resolve_links"](text, repository, "1.2.3")
    paths = [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    targets = re.findall(r"\]\(([^)]+)\)", shown)
    assert [target for target in targets if not target.startswith("https://")] == []
    assert sum(target.startswith(f"{REPOSITORY}/") for target in targets) == (len(paths) if repository else 0)
    assert re.sub(r"!?\[([^\]]*)\]\([^)]+\)", r"\1", shown) == re.sub(r"!?\[([^\]]*)\]\([^)]+\)", r"\1", text)
    for path in paths if repository else ():
        folder = "raw" if path.endswith(".svg") else "blob"
        assert f"]({REPOSITORY}/{folder}/v1.2.3/{path})" in shown
