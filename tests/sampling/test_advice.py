"""Refusals of sampling, over all classifiers: what their messages advise exists, and works."""

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import bayesnb as bnb
from bayesnb.sampling import nuts
from tests.sampling.models import GROUP, MODELS, WEIGHT, WITHOUT_POSTERIOR, Y, fitted

ROWS: dict[str, Any] = {"y": Y, "sample_weight": WEIGHT}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "no hyperprior": lambda nb, X: bnb.run_nuts(nb),
    "symmetric": lambda nb, X: bnb.run_nuts(nb, "symmetric"),
    "pooled": lambda nb, X: bnb.run_nuts(nb, "pooled"),
    "features": lambda nb, X: bnb.run_nuts(nb, features=[0]),
    "groups": lambda nb, X: bnb.run_nuts(nb, X=X, groups=GROUP, **ROWS),
    "source": lambda nb, X: bnb.numpyro_source(nb),
    "source, pooled": lambda nb, X: bnb.numpyro_source(nb, "pooled"),
}


class Begun(Exception):
    """Raised in place of a chain: the call was not refused."""


@pytest.mark.slow("refits of every classifier", but="groups")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [*MODELS, *WITHOUT_POSTERIOR])
def test_advice_of_a_refusal_works(name, call, monkeypatch):
    def begin(*_: object, **__: object) -> None:
        raise Begun

    monkeypatch.setattr(nuts, "_sample", begin)
    nb, X = fitted(name)
    if message := refusal(CALLS[call], nb, X):
        follow(message, CALLS[call], nb, X)


def refusal(call: Callable[[Any, Any], Any], nb: Any, X: Any) -> str:
    """Message of the refusal; "" if the call returns or begins to sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(nb, X)
        except Begun:
            pass
        except (NotImplementedError, ValueError) as error:
            return str(error)
    return ""


def follow(message: str, call: Callable[[Any, Any], Any], nb: Any, X: Any) -> None:
    """Assert that what the message advises works, or is refused with advice that does, and that its arguments exist."""
    if "Pass more rows" in message:  # too few groups for weights
        return
    others = [eval(f"bnb.{made}", {"bnb": bnb}).fit(X, **ROWS) for made in re.findall(r"\b[A-Z]\w+\([^()]*\)", message)]
    for argument, value in re.findall(r"[Uu]se (\w+)='(\w+)'", message):
        others.append(type(nb)(**{**nb.get_params(), argument: value}).fit(X, **ROWS))
    others += [getattr(nb, inner) for inner in re.findall(r"(?:run_nuts|numpyro_source)\(nb\.(\w+)", message)]
    others += nb.members_[:1] if "members_" in message else []
    others += [nb.estimator.fit(X, **ROWS)] if "without FeatureAveragedNB" in message else []
    for other in others:
        if again := refusal(call, other, X):
            assert again != message
            follow(again, call, other, X)
    drawn = [bnb.posterior_draws(nb, draws=2)] if re.search(r"posterior_draws(?! *\()", message) else []
    drawn += [
        bnb.posterior_draws(getattr(nb, inner), 2) for inner in re.findall(r"posterior_draws\(nb\.(\w+)", message)
    ]
    if "sample_latent" in message:
        drawn.append(bnb.sample_latent(nb, X, draws=2, warmup=2, chains=1, progress=False))
    assert others or drawn, message
    outside = re.sub(r"\([^()]*\)", "", message)
    arguments = {*inspect.signature(bnb.run_nuts).parameters, *nb.get_params()}
    assert {argument for argument in re.findall(r"\b(\w+)=", outside)} <= arguments, message
    if "X=X, y=y" in message:
        assert not refusal(lambda nb, X: bnb.run_nuts(nb, X=X, **ROWS), nb, X)
