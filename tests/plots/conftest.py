"""Figures are drawn without windows, and leave matplotlib as it was."""

import warnings

import pytest


@pytest.fixture(autouse=True)
def _quiet():
    """A backend without windows; glyphs that are missing when a figure is drawn are an error."""
    pytest.importorskip("matplotlib")
    from matplotlib import get_backend, pyplot, rc_context, rcParams

    with rc_context({"backend": get_backend()}), warnings.catch_warnings():
        pyplot.switch_backend("agg")
        before = dict(rcParams)
        warnings.filterwarnings("error", "Glyph")
        warnings.filterwarnings("error", ".*constrained_layout")
        yield
        assert dict(rcParams) == before
    pyplot.close("all")
