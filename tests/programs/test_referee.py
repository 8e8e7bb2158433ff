"""Law 2 with NumPyro: log p(D, θ) - log p(θ | D) is log p(D) for any θ, the densities those of the programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro import distributions as dist
from scipy.special import gammaln, logsumexp

from bayesnb import NaiveBayes
from bayesnb.families import Known
from bayesnb.families.normal_inverse_gamma import Normal
from bayesnb.sampling import programs
from tests.laws import test_bayes_identity as by_scipy
from tests.programs.fitted import ESTIMATORS, POINTS, TOLERANCE, Fitted, Program, one_more, ordinary
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


class InOneOrder(dist.Distribution):
    """A multinomial without its coefficient."""

    def __init__(self, multinomial: Any) -> None:
        self.probs = multinomial.probs
        super().__init__(multinomial.batch_shape, multinomial.event_shape)

    def log_prob(self, value: Any) -> jax.Array:
        return jnp.sum(value * jnp.log(self.probs), axis=-1)


def without_coefficient(fitted: Fitted, monkeypatch: Any) -> list[Program]:
    cells = programs.distribution_of_cells

    def bare(site: Any) -> Any:
        name, arguments = site.distribution
        counted = name == "Multinomial"
        return InOneOrder(dist.Multinomial(**arguments)).to_event(1) if counted else cells(site)

    monkeypatch.setattr(programs, "distribution_of_cells", bare)
    statistics = replace(fitted.nb.statistics_, log_base=np.zeros(()))
    return [fitted.row_form(), fitted.statistics_form(statistics=statistics)]


def coefficient_of_all_rows_together(fitted: Fitted, monkeypatch: Any) -> list[Program]:
    """One coefficient of the totals of a class, in place of one a document."""
    words = fitted.nb.statistics_.blocks[0].count
    once = np.sum(gammaln(words.sum(axis=1) + 1)) - np.sum(gammaln(words + 1))
    return [fitted.statistics_form(statistics=replace(fitted.nb.statistics_, log_base=once))]


def weights_counted_twice(fitted: Fitted, monkeypatch: Any) -> list[Program]:
    """Rows repeated as often as their weight says, and weighted nonetheless."""
    weight = fitted.problem.weight**2
    twice = fitted.problem.fit(weight=weight)
    return [fitted.row_form(weight=weight), fitted.statistics_form(statistics=twice.statistics_)]


def weights_forgotten(fitted: Fitted, monkeypatch: Any) -> list[Program]:
    return [fitted.row_form(weight=None)]


def sigma_for_sigma2(fitted: Fitted, monkeypatch: Any) -> list[Program]:
    sample = programs.sample_parameters

    def confused(family: Any, own: Any) -> Any:
        likelihood = sample(family, own)
        return Normal(likelihood.mu, likelihood.sigma2**2) if isinstance(likelihood, Normal) else likelihood

    monkeypatch.setattr(programs, "sample_parameters", confused)
    return both_forms(fitted)


def alpha_off_by_one(fitted: Fitted, monkeypatch: Any) -> list[Program]:
    return both_forms(fitted, NaiveBayes(fitted.nb.prior_.class_prior, tuple(map(one_more, fitted.nb.prior_.blocks))))


def class_alpha_off_by_one(fitted: Fitted, monkeypatch: Any) -> list[Program]:
    return both_forms(fitted, replace(fitted.nb.prior_, class_prior=one_more(fitted.nb.prior_.class_prior)))


CONTROLS = {
    without_coefficient: ("multinomial", "mixed"),
    coefficient_of_all_rows_together: ("multinomial",),
    weights_counted_twice: ("categorical", "bernoulli", "multinomial", "gaussian", "poisson", "mixed"),
    weights_forgotten: ("gaussian",),
    sigma_for_sigma2: ("gaussian", "mixed"),
    alpha_off_by_one: ("categorical", "bernoulli", "multinomial", "gaussian", "poisson", "mixed"),
    class_alpha_off_by_one: ("categorical",),
}


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_rows_of_the_controls_pass_without_a_mistake(kind):
    fitted, drawn = ordinary(kind)
    for found in fitted.discrepancies(drawn, *both_forms(fitted)):
        assert (found <= 1.0).all()


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(
    ("kind", "control"),
    [
        pytest.param(kind, control, id=f"{control.__name__}-{kind}", marks=[pytest.mark.slow] if i else [])
        for control in CONTROLS
        for i, kind in enumerate(CONTROLS[control])
    ],
)
def test_negative_controls(kind, control, monkeypatch):
    """With a mistake in the program or the data the same check fails, a thousand times the tolerance at every θ."""
    fitted, drawn = ordinary(kind)
    for found in fitted.discrepancies(drawn, *control(fitted, monkeypatch)):
        assert (found > 1e3).all()


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
