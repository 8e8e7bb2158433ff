"""Figures of diagnostic tests show the rows of their table."""

import numpy as np
import pandas as pd
import pytest

from tests.raises import refused

pytest.importorskip("matplotlib")
import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said

pytestmark = pytest.mark.filterwarnings("ignore:Monte Carlo")


@pytest.fixture(scope="module")
def found():
    """Two tests in two populations (Hui & Walter 1980, table 1)."""
    pattern = {LONG: [1, 1, 0, 0] * 2, "Tine": [1, 0, 1, 0] * 2, "group": ["1"] * 4 + ["2"] * 4}
    count = [14, 4, 9, 528, 887, 31, 37, 367]
    return bnb.diagnostic_tests(pd.DataFrame(pattern), "group", sample_weight=count, draws=50, progress=False)


def test_forest_has_means_and_both_intervals(found):
    ax, table = check(plots.forest(found)), found.table
    labels = [tuple(text.get_text().split(" | ")) for text in ax.get_yticklabels()]
    short = dict(
        zip([LONG, "Tine", "1", "2"], [next(n for _, n in labels if n[:2] == LONG[:2]), "Tine", "1", "2"], strict=True)
    )
    by_row = table.assign(name=table["name"].map(short)).set_index(["quantity", "name"])
    assert set(labels) == set(by_row.index)
    table = by_row.loc[labels]
    prior = np.array(ax.collections[0].get_segments())[:, :, 0]
    np.testing.assert_allclose(prior, table[["prior_lower", "prior_upper"]])
    means = [line.get_xdata()[0] for line in ax.lines if line.get_markersize() == 4.5]
    ends = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(means, table["mean"])
    np.testing.assert_allclose(ends, table[["lower", "upper"]])
    assert ax.get_ylabel() == "quantity | test or population"
    assert "90% interval" in said(ax)
    assert "prior only" not in said(ax)
    assert "interval of the prior" in said(ax)
    names = [text.get_text() for text in plots.forest(found, ["Tine"], parameter="sensitivity").get_yticklabels()]
    assert names == ["sensitivity | Tine"]


def test_what_the_prior_alone_identifies_is_said():
    table = pd.DataFrame({"A": [1, 1, 0, 0], "B": [1, 0, 1, 0]})
    found = bnb.diagnostic_tests(table, sample_weight=[30, 5, 5, 100], draws=50, progress=False)
    assert "Identified by the prior only: 5 of 5" in said(check(plots.forest(found)))


def test_profiles_have_the_rates_of_positive_results(found):
    ax = check(plots.latent_profiles(found))
    mean = found.table.set_index(["quantity", "name"])["mean"]
    healthy, diseased = (line.get_xdata() for line in ax.lines)
    np.testing.assert_allclose(healthy, 1 - mean["specificity"])
    np.testing.assert_allclose(diseased, mean["sensitivity"])
    sensitivity = found.table.query("quantity == 'sensitivity'")
    ends = np.array(ax.collections[1].get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, sensitivity[["lower", "upper"]])
    assert f"diseased: prevalence {mean['prevalence', '1']:.1%} to {mean['prevalence', '2']:.1%}" in said(ax)


def test_bad_arguments(found):
    refused("'PCR' is no test or population", plots.forest, found, ["PCR"])
    refused("parameter='theta' is unknown; use .*'prevalence'", plots.forest, found, parameter="theta")
    refused(r"Use diagnostic_tests\(prob=\)", plots.forest, found, prob=0.5)
    refused(r"Use diagnostic_tests\(prob=\)", plots.latent_profiles, found, prob=0.5)
    refused("Leave out data=", plots.latent_profiles, found, found.data)
    refused("have no sensitivity", plots.latent_profiles, found, features=["1"])
    refused("a result of diagnostic_tests", plots.latent_profiles, bnb.CategoricalNB(), error=TypeError)
