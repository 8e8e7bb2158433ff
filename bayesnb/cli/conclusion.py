"""What the numbers of one data set come to: plain rules that make sentences of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bayesnb.cli.findings import NOISE, NOISE_OF_FOLDS, Difference, Findings
from bayesnb.cli.text import enumerate_names
from bayesnb.evaluation.estimates import WEIGHTED

STRONG = 5
"""Log Bayes factor, in nats, from which the evidence of dependence is called strong."""
_FEW_ROWS = 30
_MANY_MOVE = 0.02
_LEVELS = ("categorical", "bernoulli")
_PERFECT = 0.001
_LONG = 40


@dataclass(frozen=True)
class Step:
    """What to try next and why: flags of the same command, or an expression in Python."""

    why: str
    flags: Mapping[str, str] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True)
class Conclusion:
    """Which estimate won, how sure it is of itself and others are, what qualifies that, and what to try next.

    `about` says what the steps take for granted.
    """

    verdict: str
    confidence: tuple[str, ...]
    details: tuple[str, ...]
    steps: tuple[Step, ...]
    about: str


def conclude(found: Findings) -> Conclusion:
    """What the findings come to.

    The Brier score decides. An estimate wins if it is better than maximum likelihood by more than two standard errors
    of their paired difference (three if cross-validated), and has the lowest score of those that are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesnb import GaussianNB, compare_estimates
    >>> from bayesnb.cli.conclusion import conclude
    >>> from bayesnb.cli.findings import Base, Findings
    >>> X, y = load_iris(return_X_y=True)
    >>> table = compare_estimates(GaussianNB(), X[::2], y[::2], X[1::2], y[1::2])
    >>> conclude(Findings(table, 75, 1, Base("0", 1 / 3, 2 / 3, {}), "GaussianNB()", {})).verdict[:26]
    'No estimate is better than'
    """
    table = found.comparison
    scores: dict[str, dict[Any, Any]] = {str(n): r for n, r in zip(table.index, table.to_dict("records"), strict=True)}
    plain = next((name for name in scores if "predictive" in name.split(" = ")), next(reversed(scores)))
    won = _winner(scores, found)
    subject = won or (
        min(scores, key=lambda name: scores[name]["brier"]) if _brier(scores[plain], found).sign > 0 else plain
    )
    return Conclusion(
        " ".join(
            [
                _verdict(scores, won, plain, found),
                *_of_weights(scores, won, plain, found),
                *_reservations(scores, plain, found),
            ]
        ),
        tuple(_confidence(name, scores[name], found) for name in dict.fromkeys([subject, plain])),
        tuple(_details(scores, won, subject, plain, found)),
        tuple(_steps(scores, won, found)),
        _about(found),
    )


def _about(found: Findings) -> str:
    """What X and y are, where a step is in Python."""
    without = enumerate_names([found.target, *found.left_out], 8)
    return (
        f"In Python y is the column {found.target}, and X the table without {without}: numbers as floats, levels as "
        "text, missing cells as NaN. What is new was not scored here; hold it against these numbers before you believe "
        "in it."
    )


def _brier(row: Mapping[Any, Any], found: Findings) -> Difference:
    return Difference(row["brier_difference"], row["brier_difference_se"], found.noise)


def _log_loss(row: Mapping[Any, Any], found: Findings) -> Difference:
    return Difference(row["log_loss_difference"], row["log_loss_difference_se"], found.noise)


def _winner(scores: Mapping[str, dict[Any, Any]], found: Findings) -> str | None:
    better = [name for name, row in list(scores.items())[1:] if _brier(row, found).sign < 0]
    return min(better, key=lambda name: scores[name]["brier"], default=None)


def _called(name: str) -> str:
    first, *same = name.split(" = ")
    if first != "mle":
        return name
    return f"maximum likelihood (= {' = '.join(same)})" if same else "maximum likelihood"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _verdict(scores: Mapping[str, dict[Any, Any]], won: str | None, plain: str, found: Findings) -> str:
    first, *others = scores
    lowest = min(scores, key=lambda name: scores[name]["brier"])
    if not others:
        return f"All estimates agree in every row ({first}): there is nothing to choose between them."
    if won is not None:
        difference = _brier(scores[won], found)
        sure = difference.se > 0
        times = f", {abs(difference.mean) / difference.se:.1f} standard errors" if sure else ""
        also = f" {_sentence(lowest)} is lower still, but within noise of maximum likelihood." * (lowest != won)
        return (
            f"{_sentence(won)} wins: Brier score {scores[won]['brier']:.4f} against {scores[first]['brier']:.4f} of "
            f"maximum likelihood, a difference of {difference.text}{times}; that is more than noise.{also}"
        )
    difference = _brier(scores[plain], found)
    if difference.sign > 0:
        worse = f"is worse by {difference.text}, which is more than noise"
        if lowest == first:
            return f"Maximum likelihood wins: the Brier score of {plain} {worse}, and no other estimate is better."
        return (
            f"Nothing is better than maximum likelihood beyond noise: {lowest} has the lowest Brier score, "
            f"{scores[lowest]['brier']:.4f}, a difference of {_brier(scores[lowest], found).text}, and {plain} {worse}."
        )
    if lowest != first:
        against = f"against {scores[first]['brier']:.4f} of maximum likelihood; they"
        difference = _brier(scores[lowest], found)
    else:
        against = f"and {plain}"
    return (
        f"No estimate is better than maximum likelihood beyond noise: {_called(lowest)} has the lowest Brier score, "
        f"{scores[lowest]['brier']:.4f}, {against} differ{'s from it' * (lowest == first)} by {difference.text}."
    )


def _leads(scores: Mapping[str, dict[Any, Any]], won: str | None, found: Findings) -> bool:
    """Whether weights have the best score, of those that count if some do, and one better than without beyond noise."""
    best = won or min(scores, key=lambda name: scores[name]["brier"])
    return WEIGHTED in best.split(" = ") and found.weights_help


def _of_weights(scores: Mapping[str, dict[Any, Any]], won: str | None, plain: str, found: Findings) -> list[str]:
    """How much of a win is owed to the weights, and how much to what is weighted."""
    if found.weighting is None or not (_leads(scores, won, found) or (won and WEIGHTED in won.split(" = "))):
        return []
    gain = Difference(*found.weighting, found.noise)
    return [
        f"Weights change the score of {plain} by {gain.text}, which is {'more than' if gain.sign else 'within'} noise."
    ]


def _gap(row: Mapping[Any, Any], found: Findings) -> Difference:
    """Stated confidence less observed accuracy; the standard error is that of a share of so many rows."""
    rows = found.rows
    share = (row["accuracy"] * rows + 1) / (rows + 2)  # so that a share of 1 has a standard error, too
    return Difference(row["confidence"] - row["accuracy"], math.sqrt(share * (1 - share) / rows), found.noise)


def _confidence(name: str, row: Mapping[Any, Any], found: Findings) -> str:
    gap = _gap(row, found)
    what = {0: "no gap beyond noise", 1: "too sure, by more than noise", -1: "not sure enough, by more than noise"}
    return (
        f"{_sentence(_called(name))} states a confidence of {row['confidence']:.3f} on average and is right in "
        f"{row['accuracy']:.3f} of {found.rows:,} rows: {what[gap.sign]} ({gap.text})."
    )


def _details(
    scores: Mapping[str, dict[Any, Any]], won: str | None, subject: str, plain: str, found: Findings
) -> list[str]:
    first, details = next(iter(scores)), []
    said = {-1: "better beyond noise", 0: "no difference beyond noise", 1: "worse beyond noise"}
    if won is not None and won != plain and plain != first:
        difference = _brier(scores[plain], found)
        details.append(f"{_sentence(plain)}: {difference.text} from maximum likelihood, {said[difference.sign]}.")
    of = won or plain
    difference = _log_loss(scores[of], found)
    if of != first and difference.sign != _brier(scores[of], found).sign:
        details.append(
            f"By log loss (clipped) {of} differs from maximum likelihood by {difference.text}: {said[difference.sign]}."
        )
    base, accuracy = found.base, scores[subject]["accuracy"]
    always = f"{found.target} = {base.label}" if len(found.target) <= _LONG else f"“{base.label}”"
    details.append(
        f"Always saying {always}, which no other class outnumbers, would be right in {base.accuracy:.3f}; "
        f"{_called(subject)} is, in {accuracy:.3f}."
    )
    if subject in base.gains:
        gain = Difference(*base.gains[subject], found.noise)
        how = {-1: "better beyond noise", 0: "not better beyond noise", 1: "worse beyond noise"}[gain.sign]
        why = "the features tell little of the class, or the rows are too few to show it"
        if _gap(scores[subject], found).sign > 0:
            why = "it is too sure, and that costs what the features tell"
        details.append(
            f"Against stating the share of each class, whatever the row, its Brier score is {how}: {gain.text}"
            f"{f'; {why}' * (gain.sign >= 0)}."
        )
    if accuracy == 1 and scores[subject]["brier"] < _PERFECT:
        details.append(
            "Every held-out row is predicted right, and with next to no doubt: look whether a column says the class in "
            "other words, or was known only after it."
        )
    if found.fits > 1:
        details.append(
            "Cross-validated: standard errors take rows for independent, though the fits share rows, and are too "
            f"small. So {NOISE_OF_FOLDS:g} of them count as more than noise here, not {NOISE:g}."
        )
    else:
        details.append(
            "Standard errors are those of these fits on other rows; how much fits to other rows would differ is not in "
            "them."
        )
    if found.rows < _FEW_ROWS:
        details.append(f"From {found.rows} rows a standard error is itself a rough guess.")
    return details


def _reservations(scores: Mapping[str, dict[Any, Any]], plain: str, found: Findings) -> list[str]:
    """Rows of which an estimate excludes the true class, or says nothing; and whether all say less than nothing."""
    first, rows, details = next(iter(scores)), found.rows, []
    for column, what in (
        ("impossible_rows", "gives the true class probability zero in"),
        ("undefined_rows", "has no probabilities at all in"),
    ):
        mine, other = int(scores[first][column]), int(scores[plain][column])
        if mine or other:
            against = "" if plain == first else f"; {plain} in {f'{other:,}' if other else 'none'}"
            infinite = ". A log loss with such a row is infinite" * (column == "impossible_rows")
            details.append(f"{_called(first)} {what} {mine:,} of {rows:,} rows{against}{infinite}.")
    if found.base.brier <= min(row["brier"] for row in scores.values()):
        details.append(
            "No estimate is better than stating the share of each class, whatever the row (Brier score "
            f"{found.base.brier:.4f})."
        )
    return [*map(_sentence, details)]


def _steps(scores: Mapping[str, dict[Any, Any]], won: str | None, found: Findings) -> list[Step]:
    steps, several = [], len(found.kinds) > 1
    weighted = next((name for name in scores if WEIGHTED in name.split(" = ")), None)
    lead = _leads(scores, won, found)
    if not found.weights and several:
        steps.append(
            Step(
                "Weights of features were off. Naive Bayes counts what features have in common more than once; "
                "weights can mend that.",
                {"weights": "auto"},
            )
        )
    if lead:
        why = "won" if won else "have the lowest score, and a better one than none beyond noise"
        steps.append(Step(f"Weights {why}: predict with them.", code=f"bayesnb.WeightedNB({found.model}).fit(X, y)"))
    alpha = next((part[6:] for part in (won or "").split(" = ") if part.startswith("alpha=")), None)
    if alpha is not None:
        steps.append(Step(f"The prior alpha={alpha} won: make it that of the model.", {"alpha": alpha}))
    elif found.moved is not None and found.moved[0] > max(1, _MANY_MOVE * found.moved[1]):
        binned = "binned" in found.kinds.values()
        (moved, rows), tuned = found.moved, f"bayesnb.tune_alpha({found.model}.fit(X, y), X, y).estimator"
        steps.append(
            Step(
                f"The strength of the prior decides the label of {moved:,} of {rows:,} held-out rows: let "
                "leave-one-out choose it.",
                code=f"bayesnb.WeightedNB({tuned}).fit(X, y)" if lead and not binned else tuned,
            )
        )
    helped = lead or found.weights_help
    mended = helped and weighted is not None and _gap(scores[weighted], found).sign <= 0
    if found.weights and several and not mended:
        steps += _structures(found, weighted is not None, helped)
    return steps


def _structures(found: Findings, weighed: bool, helped: bool) -> list[Step]:
    """Where features depend on each other, and weights have not mended it."""
    strong, pairs = found.dependent or (0, 0)
    if not strong:
        return []
    because = "still state too much" if helped else "are not better beyond noise" if weighed else "were not found"
    count = f"{strong:,}{' or more' * found.more} of {pairs:,}"
    why = f"By strong evidence {count} pairs of features depend on each other given the class, and weights {because}: "
    steps = []
    if "multinomial" not in found.kinds.values():
        levels = sum(kind in _LEVELS for kind in found.kinds.values()) > 1
        tree = 'bayesnb.TAN("evidence")' if levels else 'bayesnb.TAN("evidence", numbers="binned")'
        code = "bayesnb.WeightedNB()" if weighed else tree
        steps.append(Step(f"{why}let features have others as parents.", code=f"{code}.fit(X, y)"))
        why = "Densities may be at fault, too: "
    if found.density_open:
        steps.append(Step(f"{why}let each column of numbers have a density of its own shape.", {"numbers": "auto"}))
    return steps
