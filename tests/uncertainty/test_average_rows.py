"""Intervals of an average of models by draws that vary together as the training rows do."""

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb import predict_interval
from bayesnb.decision import zero_one
from tests.uncertainty.test_training_rows import X, copied, y


@pytest.mark.slow("fits many averages of models")
def test_averages_of_models_have_intervals_with_rows():
    rng = np.random.default_rng(1)
    truth, inside = bnb.AODE().fit(*copied(rng, 20_000, 2)), []
    for _ in range(8):
        (rows, label), (new, _) = copied(rng, 200, 2), copied(rng, 60, 2)
        nb, p = bnb.AODE().fit(rows, label), truth.predict_proba(new)[:, 1]
        lower, upper = predict_interval(nb, new, rows=(rows, label), draws=500)
        inside.append(np.mean((lower[:, 1] <= p) & (p <= upper[:, 1])))
    assert 0.8 < np.mean(inside) < 0.99


def test_an_average_of_models_needs_the_rows():
    nb = bnb.AODE().fit(X, y)
    with pytest.raises(NotImplementedError):
        predict_interval(nb, X)
    mixture = bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB()).fit(X)
    with pytest.raises(NotImplementedError, match="NaiveBayesMixture has point estimates"):
        predict_interval(mixture, X, rows=(X, y))
    with pytest.raises(NotImplementedError, match="given='row' is not available"):
        predict_interval(nb, X, rows=(X, y), given="row")
    with pytest.raises(ValueError, match="groups is given, but rows is not"):
        bnb.decide(nb, X[:5], zero_one(nb.classes_), groups=y)
    lower, upper = predict_interval(nb, X[:5], rows=(X, y), draws=200)
    p = nb.predict_proba(X[:5])
    assert ((lower < p) & (p < upper)).all()
    assert bnb.decide(nb, X[:5], zero_one(nb.classes_), rows=(X, y), draws=50).p_optimal.shape == (5,)
