"""Bayes decision theory: actions of least posterior expected loss, and the probability that each is optimal."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from bayesnb._util.arguments import Seed, read_seed, require_iterable, require_mapping, require_number, shown
from bayesnb._util.arrays import to_pandas
from bayesnb._util.html import card, table
from bayesnb._util.warnings import warn
from bayesnb.encoding import check_labels
from bayesnb.fitted.state import Classifier, current_state, is_mixture, require_fitted, require_posterior
from bayesnb.uncertainty.class_probabilities import Given, Method, choose_sampler, require_options
from bayesnb.uncertainty.row_variates import TrainingData

REJECT = "reject"
_MOST_DISPLAYED_CLASSES = 12
_MEANING = (
    "Expected risk is the mean loss under the class probabilities; observed_risk(y) is the mean loss for true labels "
    "y. P(optimal) is the posterior probability, if the model holds, that the action has the least risk of all under "
    "the true parameters; it is not the probability that the action turns out well."
)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Optimal action for each row under the model, with its risk.

    Attributes
    ----------
    action : (N,) array
        Action of least posterior expected loss.
    risk : (N,) array
        Posterior expected loss of the action, Σ_c P(c | row) loss[action, c].
    p_optimal : (N,) array
        Posterior probability, under the model, that the action is the best one given the parameters. It is not the
        probability that the action turns out well, which `risk` measures. NaN if the parameters have no exact
        posterior, as those of `AODE`.
    regret : (N,) array
        Posterior expected excess of the loss of the action over that of the best action given the parameters: the value
        of knowing the parameters. NaN if the parameters have no exact posterior.
    loss : DataFrame, actions × classes
        Losses, with names of actions and classes.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, decide
    >>> from bayesnb.decision import zero_one
    >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
    >>> decisions = decide(nb, [["red"], ["green"]], zero_one(nb.classes_), reject_cost=0.3)
    >>> decisions.action
    array(['reject', 'raw'], dtype=object)
    >>> decisions.risk.round(2), decisions.p_optimal.round(2)
    (array([0.3 , 0.16]), array([0.53, 0.85]))
    """

    action: np.ndarray
    risk: np.ndarray
    p_optimal: np.ndarray
    regret: np.ndarray
    loss: pd.DataFrame

    @property
    def expected_risk(self) -> float:
        """Mean of `risk`, to be compared with `observed_risk`; under zero-one loss the mean of 1 - max P(class)."""
        return float(self.risk.mean())

    def observed_risk(self, y: object) -> float:
        """Compute the mean loss of the actions under true labels; under zero-one loss the observed error rate.

        Parameters
        ----------
        y : array-like of shape (N,)
            True labels.

        Returns
        -------
        float
            Mean loss of the actions.

        Raises
        ------
        ValueError
            If a label is not a column of `loss`, or the number of labels is not N.

        Examples
        --------
        >>> from bayesnb import CategoricalNB, decide
        >>> from bayesnb.decision import zero_one
        >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
        >>> decisions = decide(nb, [["red"], ["green"]], zero_one(nb.classes_))
        >>> round(decisions.expected_risk, 2), decisions.observed_risk(["raw", "raw"])
        (0.25, 0.5)
        """
        labels, label = check_labels(y, len(self.action), "observed_risk")
        truth = self.loss.columns.get_indexer(pd.Index(labels.values))
        if (truth < 0).any():
            unknown, known = labels.values[int(np.argmin(truth))], list(self.loss.columns)
            raise ValueError(f"y has the label {unknown!r}, which is no column of loss. The columns are {known}.")
        action = self.loss.index.get_indexer(pd.Index(self.action))
        return float(self.loss.to_numpy()[action, truth[label]].mean())

    def __repr__(self) -> str:
        known = f", mean P(optimal) {self.p_optimal.mean():.4g}, expected regret {self.regret.mean():.4g}"
        if np.isnan(self.p_optimal).all():
            known = "; P(optimal) and regret are not known, see the docs of Decisions"
        return (
            f"Decisions of {len(self.action)} rows: expected risk {self.expected_risk:.4g}{known}\n"
            f"loss[action, truth], each row an action:\n{self.loss}"
        )

    def _repr_html_(self) -> str:
        """Return actions, their mean risks, and losses as an HTML card for notebooks."""
        rows = []
        for action in self.loss.index:
            taken = self.action == action
            means = [x[taken].mean() if taken.any() else "" for x in (self.risk, self.p_optimal)]
            rows.append((action, int(taken.sum()), *means))
        total = [("expected risk", self.expected_risk), ("expected regret", float(self.regret.mean()))]
        actions = table(rows, ("action", "rows", "mean risk", "mean P(optimal)"))
        costs = self.loss.iloc[:, :_MOST_DISPLAYED_CLASSES]
        loss = table(costs.itertuples(name=None), ("loss[action, truth]", *map(str, costs.columns)))
        return card("Decisions", f"{len(self.action)} rows", actions, table(total), loss, notes=[_MEANING])


def decide(
    nb: Classifier,
    X: object,
    loss: object,
    reject_cost: float | None = None,
    given: Given | None = None,
    method: Method = "moments",
    draws: object = 1000,
    seed: Seed = 0,
    *,
    rows: TrainingData | None = None,
    groups: object = None,
) -> Decisions:
    """Choose the action of least posterior expected loss for each row.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Fitted classifier.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows of features.
    loss : (A, C) array or DataFrame
        loss[action, truth], the λ_ij of textbooks: the cost of action i when the class is j, classes in the order
        of `nb.classes_`. The numbers of actions and classes may differ. If they are equal, action i is to decide for
        class i; otherwise actions are numbered. A DataFrame of pandas names them: its columns are the classes in any
        order, its index the actions; with axes named "truth" and "action" either may come first. One of polars, which
        has no index, names the classes.
    reject_cost : float, optional
        Loss of a further action, "reject", for every class (Chow 1970).
    given : {"row", "data"}, optional
        Condition of the posterior of the parameters in `p_optimal` and `regret`: the data and the row, or the data
        alone. Default: "row", or "data" for weighted terms.
    method : {"moments", "draws"}, default "moments"
        "moments" approximates the scores log p(class, row | θ) by their exact mean, variance and skewness. "draws"
        samples θ itself, without approximation, and is far slower.
    draws : int, or return value of `posterior_draws`, `to_arviz` or `run_nuts`, default 1000
        Number of draws, or draws that replace the exact posterior.
    seed : int, JAX key, RandomState or Generator, default 0
        Seed of the draws.
    rows : tuple (X, y) or (X, y, sample_weight), optional
        Rows that `nb` has counted, all of them: parameters are drawn so that they vary together as the rows do, see
        `posterior_draws`. The condition of the posterior is then "data".
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together.

    Returns
    -------
    Decisions
        Actions with their risk, P(optimal) and regret.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    ValueError
        If the loss is not finite, or its shape or names do not fit the classes.

    Warns
    -----
    UserWarning
        If an action is dominated: another one costs no more in any class.

    Notes
    -----
    Probabilities are those of `nb.predict_proba`, so that under `zero_one` loss the action is `nb.predict(X)`.

    References
    ----------
    Duda, Hart & Stork, *Pattern Classification* (2001), ch. 2. Chow, *On optimum recognition error and reject
    tradeoff*, IEEE Trans. Inf. Theory 16 (1970).

    Examples
    --------
    Selling a raw melon costs 5, throwing a ripe one away costs 1: a melon should be sold if P(ripe) exceeds 5/6.

    >>> import pandas as pd
    >>> from bayesnb import CategoricalNB, decide
    >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
    >>> nb.predict([["red"]]), nb.predict_proba([["red"]]).round(2)
    (array(['ripe'], dtype='<U4'), array([[0.35, 0.65]]))
    >>> loss = pd.DataFrame({"raw": [5, 0], "ripe": [0, 1]}, index=["sell", "throw"])
    >>> decisions = decide(nb, [["red"]], loss)
    >>> decisions.action, decisions.risk.round(2)
    (array(['throw'], dtype=object), array([0.65]))
    """
    require_fitted(nb, "decide")
    require_options(given, method)
    seed = read_seed(seed)
    # Probabilities and draws are of one state, also if a thread counts further rows.
    mixture: Any = nb if is_mixture(nb) else None
    fitted = current_state(nb) if mixture is None else require_posterior(nb, "decide", draws)
    table = loss_table(loss, reject_cost, fitted.encoding.classes.array())
    costs = table.to_numpy()

    def summarize_draws(log_proba: np.ndarray, _: np.ndarray) -> np.ndarray:
        """Return (n, 2, A): for each action the fraction of draws in which it is optimal, and its mean excess loss."""
        excess = np.exp(log_proba) @ costs.T
        excess -= excess.min(axis=2, keepdims=True)
        best = excess <= 1e-12 * abs(costs).max()
        return np.stack([best.mean(axis=0), excess.mean(axis=0)], axis=1)

    proba = np.exp(fitted.log_proba(X)) if mixture is None else mixture.predict_proba(X, draws=draws)
    proba = np.where(np.isnan(proba).any(axis=1, keepdims=True), np.exp(fitted.class_log_prior), proba)
    risk = proba @ costs.T
    choice, row = risk.argmin(axis=1), np.arange(len(risk))
    summaries = np.full((len(row), 2, len(costs)), np.nan)
    if mixture is not None or not fitted.no_posterior or rows is not None or groups is not None:
        summaries = choose_sampler(fitted, given, method, draws, seed, rows, groups).map(fitted, X, summarize_draws)
    p_optimal, regret = summaries[row, :, choice].T
    return Decisions(table.index.to_numpy()[choice], risk[row, choice], p_optimal, regret, table)


def zero_one(classes: Sequence[Hashable]) -> pd.DataFrame:
    """Return the zero-one loss, by which every error costs 1.

    Parameters
    ----------
    classes : sequence of labels
        Classes, which are also the actions.

    Returns
    -------
    DataFrame
        Loss of each action (rows) for each true class (columns).

    Examples
    --------
    >>> from bayesnb import decision
    >>> decision.zero_one(["ham", "spam"])
    truth   ham  spam
    action
    ham     0.0   1.0
    spam    1.0   0.0
    """
    require_iterable("classes", classes, "the labels, such as nb.classes_")
    labels = list(classes)
    return pd.DataFrame(1.0 - np.eye(len(labels)), pd.Index(labels, name="action"), pd.Index(labels, name="truth"))


def bayes_theorem(prior: Mapping[Hashable, object], likelihood: Mapping[Hashable, object]) -> dict[Hashable, Fraction]:
    """Compute P(hypothesis | observation) by Bayes' theorem, in exact fractions.

    Parameters
    ----------
    prior : dict {hypothesis: number}
        P(hypothesis), or numbers proportional to it. A number is the decimal fraction that it is written as: 0.05 is
        1/20.
    likelihood : dict {hypothesis: number}
        P(observation | hypothesis).

    Returns
    -------
    dict {hypothesis: Fraction}
        Posterior probability of each hypothesis.

    Raises
    ------
    ValueError
        If the hypotheses differ, a number is negative or a likelihood above one, or the observation is impossible.

    Examples
    --------
    5% of men and .25% of women are colour-blind, and half of all people are men. P(man | colour-blind) is

    >>> from bayesnb.decision import bayes_theorem
    >>> bayes_theorem({"man": 0.5, "woman": 0.5}, {"man": 0.05, "woman": 0.0025})["man"]
    Fraction(20, 21)
    """
    for name, numbers in (("prior", prior), ("likelihood", likelihood)):
        require_mapping(name, numbers, "{hypothesis: number}")
    if set(prior) != set(likelihood):
        names = f"prior has {list(prior)}, and likelihood has {list(likelihood)}"
        raise ValueError(f"prior and likelihood must have the same hypotheses; {names}.")
    joint = {}
    for hypothesis in prior:
        p, q = (Fraction(str(numbers[hypothesis])) for numbers in (prior, likelihood))
        if p < 0 or not 0 <= q <= 1:
            found = f"{shown(hypothesis)} has prior {prior[hypothesis]} and likelihood {likelihood[hypothesis]}"
            raise ValueError(f"{found}; a prior must be at least 0, and a likelihood in [0, 1].")
        joint[hypothesis] = p * q
    total = sum(joint.values())
    if not total:
        raise ValueError("The observation is impossible under every hypothesis with a positive prior. Add another.")
    return {hypothesis: value / total for hypothesis, value in joint.items()}


def loss_table(loss: object, reject_cost: float | None, classes: np.ndarray) -> pd.DataFrame:
    """Return the checked losses, actions × classes, classes in the order of `classes` and rejection last.

    Raises
    ------
    ValueError
        If shape, names or values of the losses do not fit.

    Warns
    -----
    UserWarning
        If an action is dominated: another one costs no more in any class.
    """
    labels = np.asarray(classes).tolist()
    loss = to_pandas(loss, "loss")
    if isinstance(loss, pd.DataFrame):
        table = loss.T if loss.index.name == "truth" or loss.columns.name == "action" else loss
        if len(table.columns) != len(labels) or set(table.columns) != set(labels):
            where = "Make classes the columns, or name the axes 'action' and 'truth'"
            raise ValueError(f"loss has the columns {list(table.columns)}, but the classes are {labels}. {where}.")
        table = table[labels]
    else:
        values = np.asarray(loss)
        if values.ndim != 2 or values.shape[1] != len(labels) or not len(values):
            what = f"a row for each action, and a column for each of the classes {labels}"
            raise ValueError(f"loss has shape {values.shape}; it must have {what}.")
        table = pd.DataFrame(values, labels if len(values) == len(labels) else range(len(values)), labels)
    if reject_cost is not None:
        require_number("reject_cost", reject_cost, "a finite number, the cost of not deciding", lambda _: True)
        table = pd.concat([table, pd.DataFrame(reject_cost, [REJECT], labels)])
    if not table.index.is_unique:
        raise ValueError(f"loss names an action twice: {list(table.index)}. Rename one; reject_cost adds {REJECT!r}.")
    try:
        table = table.astype(np.float64).rename_axis(index="action", columns="truth")
    except (TypeError, ValueError):
        raise ValueError(f"loss must be a table of numbers; it is\n{table}") from None
    costs = table.to_numpy()
    if not np.isfinite(costs).all():
        a, c = np.argwhere(~np.isfinite(costs))[0].tolist()
        place = f"loss[{shown(table.index[a])}, {shown(table.columns[c])}]"
        raise ValueError(f"{place} is {costs[a, c]}; every loss must be finite. Use a very large loss in its place.")
    for a, cost in enumerate(costs):
        # Of two actions with equal losses the first is preferred.
        dominates = (costs <= cost).all(axis=1) & ((costs < cost).any(axis=1) | (np.arange(len(costs)) < a))
        if dominates.any():
            action, better = shown(table.index[a]), shown(table.index[int(np.argmax(dominates))])
            warn(f"loss: the action {action} is dominated, because {better} costs no more in any class.")
    return table


__all__ = ["REJECT", "Decisions", "bayes_theorem", "decide", "zero_one"]
