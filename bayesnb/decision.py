"""Bayes decision theory: the action of least posterior expected loss, and how sure it is the best one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_iterable, require_mapping, require_number, require_seed, shown
from bayesnb._util.html import card, table
from bayesnb._util.warnings import warn
from bayesnb.encoding import check_labels
from bayesnb.fitted import Classifier, require_fitted
from bayesnb.uncertainty.class_probabilities import Given, Method, choose_sampler, require_options

if TYPE_CHECKING:
    import pandas as pd

REJECT = "reject"
_SHOWN = 12
_MEANING = (
    "Expected risk is what class probabilities say of themselves; observed_risk(y) is what labels say. P(optimal) is "
    "about the parameters, if the model holds: not the probability that an action turns out well."
)


@dataclass(frozen=True, eq=False)
class Decisions:
    """What to do with each row, if naive Bayes holds.

    Attributes
    ----------
    action : (N,) array
        Of least posterior expected loss.
    risk : (N,) array
        That loss, Σ_c P(c | row) loss[action, c].
    p_optimal : (N,) array
        Posterior probability, under the model, that this action is the best one given the parameters. It is not the
        probability that the action turns out well: that is in `risk`.
    regret : (N,) array
        Posterior expected loss of this action above that of the best one given the parameters: what it would be worth
        to know them. Like `p_optimal` NaN where the parameters have no exact posterior, as those of `AODE`.
    loss : DataFrame, actions × classes
        As it was read.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, decide
    >>> from bayesnb.decision import zero_one
    >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
    >>> found = decide(nb, [["red"], ["green"]], zero_one(nb.classes_), reject_cost=0.3)
    >>> found.action
    array(['reject', 'raw'], dtype=object)
    >>> found.risk.round(2), found.p_optimal.round(2)
    (array([0.3 , 0.16]), array([0.53, 0.85]))
    """

    action: np.ndarray
    risk: np.ndarray
    p_optimal: np.ndarray
    regret: np.ndarray
    loss: pd.DataFrame

    @property
    def expected_risk(self) -> float:
        """Mean of `risk`: under zero-one loss the mean of 1 - max p. To be held against `observed_risk`."""
        return float(self.risk.mean())

    def observed_risk(self, y: Any) -> float:
        """Mean loss of the actions where `y` (N,) is the truth: under zero-one loss the observed error.

        Raises
        ------
        ValueError
            If a label is no column of `loss`, or there are not N.

        Examples
        --------
        >>> from bayesnb import CategoricalNB, decide
        >>> from bayesnb.decision import zero_one
        >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
        >>> found = decide(nb, [["red"], ["green"]], zero_one(nb.classes_))
        >>> round(found.expected_risk, 2), found.observed_risk(["raw", "raw"])
        (0.25, 0.5)
        """
        import pandas as pd

        found, label = check_labels(y, len(self.action), "observed_risk")
        truth = _positions(found.values, self.loss.columns, "y has the label {!r}, for which there is no loss")[label]
        action = self.loss.index.get_indexer(pd.Index(self.action))
        return float(self.loss.to_numpy()[action, truth].mean())

    def __repr__(self) -> str:
        known = f", mean P(optimal) {self.p_optimal.mean():.4g}, expected regret {self.regret.mean():.4g}"
        if np.isnan(self.p_optimal).all():
            known = "; P(optimal) and regret are not known, see the docs of Decisions"
        return (
            f"Decisions of {len(self.action)} rows: expected risk {self.expected_risk:.4g}{known}\n"
            f"loss[action, truth], each row an action:\n{self.loss}"
        )

    def _repr_html_(self) -> str:
        taken = [(action, self.action == action) for action in self.loss.index]
        rows = [
            (a, int(m.sum()), *((x[m].mean() if m.any() else "") for x in (self.risk, self.p_optimal)))
            for a, m in taken
        ]
        total = [("expected risk", self.expected_risk), ("expected regret", float(self.regret.mean()))]
        actions = table(rows, ("action", "rows", "mean risk", "mean P(optimal)"))
        costs = self.loss.iloc[:, :_SHOWN]  # of so many classes
        each = [(a, *values) for a, values in zip(costs.index, costs.to_numpy().tolist(), strict=True)]
        loss = table(each, ("loss[action, truth]", *map(str, costs.columns)))
        return card("Decisions", f"{len(self.action)} rows", actions, table(total), loss, notes=[_MEANING])


def decide(
    nb: Classifier,
    X: Any,
    loss: Any,
    reject_cost: float | None = None,
    given: Given | None = None,
    method: Method = "moments",
    draws: Any = 1000,
    seed: int = 0,
) -> Decisions:
    """The action of least posterior expected loss for each row.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : (N, F) rows
    loss : (A, C) array or DataFrame
        loss[action, truth], the textbook's λ_ij: what it costs to decide i when the truth is j, classes in the order
        of `nb.classes_`. There may be more actions than classes, or fewer. With as many, action i is to decide for
        class i; else actions are numbered. A DataFrame names them: its columns are the classes in any order, its
        index the actions; with axes named "truth" and "action" either may come first.
    reject_cost : float, optional
        Loss of one more action, "reject", whatever the truth (Chow 1970).
    given, method, draws, seed
        As for `predict_interval`; they concern `p_optimal` and `regret`, which are given the row by default, and given
        the data where terms are weighted.

    Returns
    -------
    Decisions

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    ValueError
        If the loss is not finite, or its shape or names do not fit the classes.

    Warns
    -----
    UserWarning
        If an action is dominated: another one never costs more.

    Notes
    -----
    Probabilities are those of `nb.predict_proba`, so that under `zero_one` loss the action is `nb.predict`.

    References
    ----------
    Duda, Hart & Stork, *Pattern Classification* (2001), ch. 2. Chow, *On optimum recognition error and reject
    tradeoff*, IEEE Trans. Inf. Theory 16 (1970).

    Examples
    --------
    To sell a raw melon costs 5, to throw a ripe one away costs 1: sold is what is ripe with a probability above 5/6.

    >>> import pandas as pd
    >>> from bayesnb import CategoricalNB, decide
    >>> nb = CategoricalNB().fit([["red"]] * 4 + [["green"]] * 4, ["ripe"] * 3 + ["raw"] * 5)
    >>> nb.predict([["red"]]), nb.predict_proba([["red"]]).round(2)
    (array(['ripe'], dtype='<U4'), array([[0.35, 0.65]]))
    >>> loss = pd.DataFrame({"raw": [5, 0], "ripe": [0, 1]}, index=["sell", "throw"])
    >>> found = decide(nb, [["red"]], loss)
    >>> found.action, found.risk.round(2)
    (array(['throw'], dtype=object), array([0.65]))
    """
    require_fitted(nb, "decide")
    require_options(given, method)
    require_seed(seed)
    fitted = None if nb.no_posterior else nb.fitted_
    drawing = None if fitted is None else choose_sampler(fitted, given, method, draws, seed)
    table = _loss_table(loss, reject_cost, nb.classes_)
    costs = table.to_numpy()

    def of_draws(log_proba: np.ndarray, _: np.ndarray) -> np.ndarray:
        """(n, 2, A): how often each action is the best one, and how much more than that it costs."""
        excess = np.exp(log_proba) @ costs.T
        excess -= excess.min(axis=2, keepdims=True)
        best = excess <= 1e-12 * abs(costs).max()
        return np.stack([best.mean(axis=0), excess.mean(axis=0)], axis=1)

    proba = nb.predict_proba(X) if fitted is None else np.exp(fitted.log_proba(X))
    undefined = np.isnan(proba).any(axis=1)
    if undefined.any():
        proba[undefined] = np.exp(nb.class_log_prior_ if fitted is None else fitted.class_log_prior)
    risk = proba @ costs.T
    choice = risk.argmin(axis=1)
    each = np.arange(len(choice))
    found = np.full((len(choice), 2, len(costs)), np.nan)
    if fitted is not None and drawing is not None:
        found = drawing.map(fitted, X, of_draws)
    p_optimal, regret = found[each, :, choice].T
    return Decisions(table.index.to_numpy()[choice], risk[each, choice], p_optimal, regret, table)


def zero_one(classes: Sequence[Hashable]) -> pd.DataFrame:
    """Zero-one loss: an error costs 1, whichever it is.

    Examples
    --------
    >>> from bayesnb import decision
    >>> decision.zero_one(["ham", "spam"])
    truth   ham  spam
    action
    ham     0.0   1.0
    spam    1.0   0.0
    """
    import pandas as pd

    require_iterable("classes", classes, "the labels, such as nb.classes_")
    labels = list(classes)
    return pd.DataFrame(1.0 - np.eye(len(labels)), pd.Index(labels, name="action"), pd.Index(labels, name="truth"))


def bayes_theorem(prior: Mapping[Hashable, Any], likelihood: Mapping[Hashable, Any]) -> dict[Hashable, Fraction]:
    """P(hypothesis | observation) from P(hypothesis) and P(observation | hypothesis), in exact fractions.

    Parameters
    ----------
    prior, likelihood : dict {hypothesis: number}
        Numbers are taken as they are written: 0.05 is 1/20. The prior need not sum to one.

    Raises
    ------
    ValueError
        If the hypotheses differ, a number is negative or a likelihood above one, or the observation is impossible.

    Examples
    --------
    Of men 5% are colour-blind, of women .25%; half of all are men. A colour-blind person is a man with

    >>> from bayesnb.decision import bayes_theorem
    >>> bayes_theorem({"man": 0.5, "woman": 0.5}, {"man": 0.05, "woman": 0.0025})["man"]
    Fraction(20, 21)
    """
    for name, numbers in (("prior", prior), ("likelihood", likelihood)):
        require_mapping(name, numbers, "{hypothesis: number}")
    if set(prior) != set(likelihood):
        raise ValueError(f"prior is over {list(prior)} and likelihood over {list(likelihood)}: they must be the same.")
    joint = {}
    for hypothesis in prior:
        p, q = (Fraction(str(numbers[hypothesis])) for numbers in (prior, likelihood))
        if p < 0 or not 0 <= q <= 1:
            raise ValueError(
                f"{shown(hypothesis)} has prior {prior[hypothesis]} and likelihood {likelihood[hypothesis]}: a prior "
                "must be at least 0 and a likelihood in [0, 1]."
            )
        joint[hypothesis] = p * q
    total = sum(joint.values())
    if not total:
        raise ValueError("The observation is impossible under every hypothesis of positive prior probability.")
    return {hypothesis: value / total for hypothesis, value in joint.items()}


def _loss_table(loss: Any, reject_cost: float | None, classes: np.ndarray) -> pd.DataFrame:
    """Actions × classes, in the order of `classes`, rejection last."""
    import pandas as pd

    labels = np.asarray(classes).tolist()
    if isinstance(loss, pd.DataFrame):
        table = loss.T if loss.index.name == "truth" or loss.columns.name == "action" else loss
        if len(table.columns) != len(labels) or set(table.columns) != set(labels):
            raise ValueError(
                f"loss has the columns {list(table.columns)}, where the classes {labels} are needed: rows are actions "
                "and columns the truth, or name the axes 'action' and 'truth'."
            )
        table = table[labels]
    else:
        values = np.asarray(loss)
        if values.ndim != 2 or values.shape[1] != len(labels) or not len(values):
            raise ValueError(
                f"loss has shape {values.shape}; loss[action, truth] needs a row for each action and "
                f"{len(labels)} columns, one for each of the classes {labels}."
            )
        table = pd.DataFrame(values, labels if len(values) == len(labels) else range(len(values)), labels)
    if not table.index.is_unique:
        raise ValueError(f"loss names an action twice: {list(table.index)}.")
    if reject_cost is not None:
        require_number("reject_cost", reject_cost, "a finite number: what it costs not to decide", lambda _: True)
        if REJECT in table.index:
            raise ValueError(
                f"loss has an action {REJECT!r} already, and reject_cost={shown(reject_cost)} would add it."
            )
        table = pd.concat([table, pd.DataFrame(reject_cost, [REJECT], labels)])
    try:
        table = table.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"loss must be numbers, and is\n{table}") from None
    bad = ~np.isfinite(table.to_numpy())
    if bad.any():
        a, c = (int(i[0]) for i in np.nonzero(bad))
        raise ValueError(
            f"loss[{shown(table.index[a])}, {shown(table.columns[c])}] is {table.to_numpy()[a, c]}; every loss must be "
            "finite. For an action that is out of the question give a loss larger than all others."
        )
    _warn_dominated(table)
    return table.rename_axis(index="action", columns="truth")


def _warn_dominated(table: pd.DataFrame) -> None:
    costs = table.to_numpy()
    for a, mine in enumerate(costs):
        for b, other in enumerate(costs):
            if (other <= mine).all() and ((other < mine).any() or b < a):
                warn(
                    f"loss: the action {shown(table.index[a])} is dominated: {shown(table.index[b])} never costs "
                    "more, and will always be preferred."
                )
                break


def _positions(labels: Sequence[Hashable], known: Any, message: str) -> np.ndarray:
    position = known.get_indexer(list(labels))
    if (position < 0).any():
        raise ValueError(message.format(labels[int(np.argmax(position < 0))]) + f"; there are {list(known)}.")
    return position


__all__ = ["REJECT", "Decisions", "bayes_theorem", "decide", "zero_one"]
