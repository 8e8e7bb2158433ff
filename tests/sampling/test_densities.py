"""Law 2 with NumPyro: log p(D, θ) - log p(θ | D) is log p(D) for any θ, the densities those of the programs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesnb.families import GammaPoisson, Known, averaged
from bayesnb.sampling import programs
from tests.laws import test_bayes_identity as by_scipy
from tests.sampling.problem import POINTS, TOLERANCE, Fitted, ordinary
from tests.strategies import KINDS, problems, thorough

every_kind = pytest.mark.parametrize("kind", thorough([k for k in KINDS if k not in ("binned", "overdispersed")]))
few = settings(max_examples=3)  # each compiles its own densities


@pytest.mark.slow("compiles kernels of its own")
@every_kind
@few
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_joint_over_posterior_is_the_evidence(kind, data, seed):
    fitted = Fitted(data.draw(problems(kind)))
    drawn = fitted.draws(seed)
    rows, statistics, posterior = fitted.densities(
        drawn, fitted.row_form(), fitted.statistics_form(), fitted.posterior()
    )
    bound = TOLERANCE * max(1.0, abs(fitted.log_evidence))
    # NumPyro's negative binomial uses JAX's betaln, whose error at (1.5, 8) is 1.2e-6.
    of_rows = 1e-4 if kind == "dispersed" else bound
    assert rows.shape == (POINTS,)
    assert (abs(statistics - posterior - fitted.log_evidence) <= bound).all()
    assert (abs(rows - posterior - fitted.log_evidence) <= of_rows).all()
    assert (abs(statistics - rows) <= of_rows).all()
    # From outside: cell by cell with SciPy, at one θ of each kind.
    for s in (0, POINTS - 1):
        pi, thetas, prior = drawn["class_prob"][s], fitted.theta(drawn, s), fitted.nb.prior_
        families = zip([prior.class_prior, *prior.blocks], [pi[None], *thetas], strict=True)
        expected = by_scipy.log_likelihood(fitted.problem, fitted.nb, pi, thetas)
        expected += sum(by_scipy.log_density(family, theta) for family, theta in families)
        assert abs(statistics[s] - expected) <= 1e-9 * max(1.0, abs(expected))


# -- further arguments -----------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_fractional_weights_are_exponents():
    fitted = Fitted(replace(ordinary("mixed")[0].problem, weight=np.linspace(0.1, 2.3, 12)))
    (found,) = fitted.discrepancies(fitted.draws(), fitted.statistics_form())
    assert (found <= 1.0).all()


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", ["multinomial", "poisson"])
def test_counts_that_are_no_integers(kind):
    """Such as tf-idf: one density for statistics and the closed form."""
    problem = ordinary(kind)[0].problem
    fitted = Fitted(replace(problem, X=problem.X * 0.75))
    (found,) = fitted.discrepancies(fitted.draws(), fitted.statistics_form())
    assert (found <= 1.0).all()


def test_a_known_class_prior_has_no_site():
    fitted, drawn = ordinary("poisson")
    assert isinstance(fitted.nb.prior_.class_prior, Known)
    assert set(programs.to_site_values(fitted.nb.prior_, drawn, fitted.sites)) == {"rate"}


def test_a_family_without_a_program_says_so():
    family = averaged(GammaPoisson(np.ones((2, 3)), np.ones((2, 3))), np.zeros(3))
    with pytest.raises(NotImplementedError, match="Whether a feature depends on the class is discrete"):
        programs.sample_parameters(family, {})
