"""Diagnostics of `run_nuts` where R-hat or the effective sample size is no usable number."""

import re

import numpy as np
from numpyro.diagnostics import effective_sample_size

from bayesnb.sampling import nuts
from tests.sampling.test_nuts import quantiles, raised


def test_an_effective_sample_size_is_never_negative():
    estimate = float(effective_sample_size(np.tile([-1.0, 1.0], (4, 5))))
    assert estimate < 0  # so it does come from NumPyro
    for size in (estimate, -96.4, 0.3, float("nan"), float("-inf")):
        said = nuts._sample_size_message({"alpha": 5000.0, "theta": size}, 4)
        if not size >= 1:
            assert said.startswith("the effective sample size of 'theta' cannot be estimated: the draws are too few")
        assert not re.search("-|nan|inf", said)
    assert "is 96, below 400" in nuts._sample_size_message({"alpha": 5000.0, "theta": 96.4}, 4)
    assert nuts._sample_size_message({"alpha": 400.0}, 4) == ""


def test_an_r_hat_that_is_no_number_is_the_worst():
    assert "R-hat of 'stuck' cannot be estimated" in nuts._r_hat_message({"alpha": 1.5, "stuck": float("nan")})
    assert "R-hat of 'stuck' cannot be estimated" in nuts._r_hat_message({"stuck": float("inf"), "alpha": 1.0})
    assert nuts._r_hat_message({"alpha": 1.0}) == ""
    stuck = {"theta": np.stack([quantiles(1000), np.tile(np.arange(4.0)[:, None], 1000)], axis=2)}
    first, *_ = raised(stuck, np.zeros((4, 1000), bool))
    assert "R-hat of 'theta' cannot be estimated: the chains disagree" in first
