"""Law 10: a loss that is stated for new rows is, on average over data sets, not below the loss on new rows."""

import pandas as pd
import pytest

from benchmarks import stated_losses

LOO, HALVES = "loo of CategoricalNB()", "expected_log_loss_ of WeightedNB(CategoricalNB())"


@pytest.mark.slow("fits dozens of data sets")
@pytest.mark.parametrize("n_rows", [60, 300])
@pytest.mark.parametrize(("statement", "n_sets"), [(LOO, 100), (HALVES, 20)])
@pytest.mark.parametrize("family", stated_losses.FAMILIES)
def test_the_stated_loss_is_not_below_the_true_one(family, statement, n_sets, n_rows):
    found = stated_losses.summarize(pd.DataFrame(list(stated_losses.measure(family, statement, n_rows, n_sets)))).iloc[
        0
    ]
    assert found["sets"] >= n_sets - 2  # of few rows now and then too few are outside the largest class
    assert found["difference"] >= -2 * found["se"]


@pytest.mark.slow("fits dozens of data sets")
def test_on_noise_weights_state_what_they_have():
    found = stated_losses.summarize(pd.DataFrame(list(stated_losses.measure("noise", HALVES, 100, 20)))).iloc[0]
    assert found["true"] < 0.705
    assert found["difference"] == pytest.approx(0.0, abs=0.02)
