"""Law 2 with NumPyro: log p(D, θ) - log p(θ | D) is log p(D) for any θ, the densities those of the programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from bayesnb import NaiveBayes
from bayesnb.families import Known
from bayesnb.sampling import programs
from tests.laws import test_bayes_identity as by_scipy
from tests.programs.fitted import POINTS, TOLERANCE, Fitted, Program, ordinary
from tests.strategies import KINDS, problems, thorough

every_kind = pytest.mark.parametrize("kind", thorough([k for k in KINDS if k != "binned"]))  # which has no program
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
    assert rows.shape == (POINTS,)
    assert (abs(rows - posterior - fitted.log_evidence) <= bound).all()
    assert (abs(statistics - rows) <= bound).all()
    # From outside: cell by cell with SciPy, at one θ of each kind.
    for s in (0, POINTS - 1):
        pi, thetas, prior = drawn["class_prob"][s], fitted.theta(drawn, s), fitted.nb.prior_
        families = zip([prior.class_prior, *prior.blocks], [pi[None], *thetas], strict=True)
        expected = by_scipy.log_likelihood(fitted.problem, fitted.nb, pi, thetas)
        expected += sum(by_scipy.log_density(family, theta) for family, theta in families)
        assert abs(rows[s] - expected) <= 1e-9 * max(1.0, abs(expected))


@pytest.mark.slow("compiles kernels of its own")
@every_kind
@few
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_without_labels_the_class_is_summed_out(kind, data, seed):
    """Weighted log-sum-exp over the classes of densities from SciPy, cell by cell."""
    fitted = Fitted(data.draw(problems(kind)))
    drawn, problem, nb = fitted.draws(seed, 2), fitted.problem, fitted.nb
    (found,) = fitted.densities(drawn, fitted.row_form(label=None))
    X = problem.X.toarray() if hasattr(problem.X, "toarray") else problem.X
    for s in range(2):
        pi, thetas, prior = drawn["class_prob"][s], fitted.theta(drawn, s), nb.prior_
        families = zip([prior.class_prior, *prior.blocks], [pi[None], *thetas], strict=True)
        total = sum(by_scipy.log_density(family, theta) for family, theta in families)
        of_class = [[tuple(p[c] for p in t) if isinstance(t, tuple) else t[c] for t in thetas] for c in range(len(pi))]
        for i, weight in enumerate(problem.weight):
            row = X.iloc[i] if hasattr(X, "iloc") else X[i]
            scores = [np.log(pi[c]) + by_scipy.log_row(kind, nb, of_class[c], row) for c in range(len(pi))]
            total += weight * logsumexp(scores)
        assert abs(found[s] - total) <= 1e-9 * max(1.0, abs(total))


# -- what the referee has to notice ----------------------------------------------------------------


def both_forms(fitted: Fitted, prior: NaiveBayes | None = None) -> list[Program]:
    return [fitted.row_form(prior), fitted.statistics_form(prior)]


# -- further arguments -----------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_fractional_weights_are_exponents():
    fitted = Fitted(replace(ordinary("mixed")[0].problem, weight=np.linspace(0.1, 2.3, 12)))
    for found in fitted.discrepancies(fitted.draws(), *both_forms(fitted)):
        assert (found <= 1.0).all()


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", ["multinomial", "poisson"])
def test_counts_that_are_no_integers(kind):
    """Such as tf-idf: one density for rows, statistics and the closed form."""
    problem = ordinary(kind)[0].problem
    fitted = Fitted(replace(problem, X=problem.X * 0.75))
    for found in fitted.discrepancies(fitted.draws(), *both_forms(fitted)):
        assert (found <= 1.0).all()


def test_a_known_class_prior_has_no_site():
    fitted, drawn = ordinary("poisson")
    assert isinstance(fitted.nb.prior_.class_prior, Known)
    assert set(programs.to_site_values(fitted.nb.prior_, drawn, fitted.sites)) == {"rate"}


def test_a_family_without_a_program_says_so():
    with pytest.raises(NotImplementedError, match=r"int has no NumPyro program: it lacks `program`"):
        programs.sample_parameters(3, {})
