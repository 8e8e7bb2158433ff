"""The error for a removed figure names a replacement that is in the gallery."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

import bayesnb as bnb

pytestmark = pytest.mark.slow("compiles kernels of its own")

PAGE = Path(__file__).parents[2] / "docs" / "gallery" / "one_line.md"


def replacement(name: str) -> str:
    """The line that the error about a figure names."""
    with pytest.raises(AttributeError) as error:
        getattr(bnb.plots, name)
    return re.fullmatch(rf"module 'bayesnb.plots' has no attribute '{name}'; use (.*)", str(error.value))[1]


GONE = (
    *("alpha_path", "arcs", "contexts", "inclusion", "learning_curve", "pointwise_loo", "prequential", "prevalence"),
    *("set_sizes", "uncertainty_map"),
)


@pytest.mark.parametrize("name", GONE)
def test_the_gallery_has_the_line(name):
    code = PAGE.read_text(encoding="utf-8")
    line = replacement(name).replace("(nb, X)", "(nb, petal)")
    assert f"**{name}**" in code
    assert re.sub(r"\s", "", line) in re.sub(r"\s", "", code)


def test_other_names_are_only_absent():
    with pytest.raises(AttributeError, match=r"has no attribute 'histogram'$"):
        bnb.plots.histogram  # noqa: B018
