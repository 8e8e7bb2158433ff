"""Inline code of the site's pages that becomes a link."""

import importlib
import importlib.util
import inspect
import pkgutil

import pytest

from tests.docs.test_reference import NAMES, PAGES

SPEC = importlib.util.spec_from_file_location("_public_names", PAGES.parent / "_public_names.py")
public_names = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(public_names)

KNOWN = [*NAMES, "GaussianNB.fit", "TAN.fit", "KDB.parents_from", "analysis.conformal.Conformal.predict_set"]
ARGUMENTS = public_names.argument_names(frozenset(KNOWN))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("WeightedNB", "WeightedNB"),
        ("bayesnb.loo", "loo"),
        ("bnb.loo(nb, X, y)", "loo"),
        ("predict_interval()", "predict_interval"),
        ("GaussianNB().fit", "GaussianNB"),
        ("bayesnb.evaluation.reliability", "evaluation.reliability"),
        ("plots.forest", "plots.forest"),
        ("Conformal", "analysis.conformal.Conformal"),
        ("zero_one", "decision.zero_one"),
        ("GaussianNB.fit", "GaussianNB.fit"),
        ("nb.parents_from", "KDB.parents_from"),
        ("predict_set", "analysis.conformal.Conformal.predict_set"),
        ("bnb.explain", "explain"),
    ],
)
def test_code_that_stands_for_one_name(code, name):
    assert public_names.find_name(code, KNOWN, ARGUMENTS) == name


@pytest.mark.parametrize(
    "code",
    [
        *("mixture", "reliability", "explain", "fit", "nb.fit", "forest", "structure", "alpha", "weights", "weight="),
        *("X", 'estimate="mle"', "np.sum", "frame.loo", "bnb.absent", "make docs", "bayesnb/plots/", "nb.loo.x"),
    ],
)
def test_code_that_stands_for_no_name_or_for_several(code):
    assert public_names.find_name(code, KNOWN, ARGUMENTS) is None


def test_every_name_of_the_reference_stands_for_itself():
    for prefix in ("bnb.", "bayesnb."):
        assert [public_names.find_name(prefix + name, KNOWN, ARGUMENTS) for name in NAMES] == NAMES


def inventory(library):
    """Name and kind of each object in the inventory of another library."""
    lines = (PAGES.parent / "_inventories" / f"{library}.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[:2] for line in lines if not line.startswith("#")]


@pytest.mark.slow("imports large packages", but=("numpy", "pandas", "scipy", "sklearn", "jax"))
@pytest.mark.parametrize("library", sorted(path.stem for path in (PAGES.parent / "_inventories").iterdir()))
def test_links_to_other_libraries_lead_to_what_they_have(library):
    if library == "arviz" and importlib.import_module("arviz").__version__[:2] != "0.":
        pytest.skip("the inventory is that of ArviZ 0.23")
    names = [name for name, _ in inventory(library)]
    assert names == sorted(set(names))
    for name, kind in inventory(library):
        assert name.startswith(f"{library}.")
        found = pkgutil.resolve_name(name)
        kinds = {"mod": inspect.ismodule(found), "class": inspect.isclass(found), "function": callable(found)}
        assert kinds.get(kind, True), name
