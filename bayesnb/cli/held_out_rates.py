"""Rates of the classes on held-out rows, and how many rows of a class are found: what a decision rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix, roc_auc_score

from bayesnb.cli.conclusion import NOISE, Difference
from bayesnb.cli.document import Paragraph, Section, Table, fill_template
from bayesnb.cli.fitting import Fits

_THRESHOLDS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_N_THRESHOLDS = 5
_MOST_CLASSES = 12
_TOP = 0.1
_explain = partial(fill_template, "decision.txt")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows: labels, and class probabilities of fits that have not seen the rows.

    Parameters
    ----------
    classes : list of str
    label : (N,) int array
        Index of the class of each row.
    proba : (N, C) array
        Rows without class probabilities have 1/C.
    losses : DataFrame or None
        Losses, actions × classes, of a decision about each row.
    """

    classes: Sequence[str]
    label: np.ndarray
    proba: np.ndarray
    losses: pd.DataFrame | None = None

    @classmethod
    def from_fits(cls, fits: Fits, classes: Sequence[Any], losses: pd.DataFrame | None) -> HeldOut:
        """Return the labels and probabilities of the held-out rows of all folds."""
        parts = [pd.DataFrame(fold.nb.predict_proba(fold.X), columns=fold.nb.classes_) for fold in fits.folds]
        proba = pd.concat(parts).reindex(columns=list(classes), fill_value=0.0).fillna(1.0 / len(classes))
        position = {c: i for i, c in enumerate(classes)}
        label = np.array([position[c] for fold in fits.folds for c in fold.y.tolist()])
        return cls([str(c) for c in classes], label, proba.to_numpy(float), losses)

    def section(self, estimate: str) -> Section:
        """Return the section of the report; `estimate` names the estimate that the probabilities are from."""
        count = np.bincount(self.label, minlength=len(self.classes))
        most = int(np.argmax(count))
        has_rare = len(self.classes) == 2 and count.min() > 0
        about, table = self._rare_class(1 - most, estimate) if has_rare else self._each_class(estimate)
        text = _explain("majority", name=self.classes[most], share=count[most] / len(self.label), n=len(self.label))
        costs = [] if self.losses is None else [Paragraph(self._describe_costs(estimate))]
        return Section("What a decision rests on", (Paragraph(f"{text}{about}"), Table.from_frame(table), *costs))

    def _describe_costs(self, estimate: str) -> str:
        """Return a text on the cost of decisions by the probabilities, beside that of one action for all rows."""
        assert self.losses is not None
        loss, actions = self.losses.to_numpy(float), list(map(str, self.losses.index))
        risk = self.proba @ loss.T
        chosen, constant = risk.argmin(axis=1), loss[:, self.label].mean(axis=1)
        count = np.bincount(chosen, minlength=len(actions))
        taken = [f"“{name}” for {n:,} rows" for name, n in zip(actions, count, strict=True) if n]
        facts = {"taken": taken, "cost": loss[chosen, self.label].mean(), "expected": risk.min(axis=1).mean()}
        return _explain("costs", **facts, estimate=estimate, best=actions[constant.argmin()], least=constant.min())

    def _optimal_threshold(self, c: int) -> list[float]:
        """Return P(class c) from which the better of two actions changes, none without such losses of two classes."""
        if self.losses is None or self.losses.shape != (2, 2):
            return []
        # Loss of the first action less that of the second, if the row is of the class, and if it is not.
        of_class, of_other = (float(np.diff(self.losses.to_numpy(float)[::-1, k])[0]) for k in (c, 1 - c))
        return [of_other / (of_other - of_class)] if of_class * of_other < 0 else []

    def _rare_class(self, c: int, estimate: str) -> tuple[str, pd.DataFrame]:
        """Return a text on class `c`, the rarer of two, and its recall and precision at several thresholds."""
        name, is_class, p = self.classes[c], self.label == c, self.proba[:, c]
        n, found, rate = len(p), int(is_class.sum()), float(is_class.mean())
        # Standard error of the area if the probabilities say nothing (Mann and Whitney 1947).
        area = Difference(roc_auc_score(is_class, p) - 0.5, sqrt((n + 1) / (12.0 * found * (n - found))), NOISE)
        top = is_class[np.argsort(-p, kind="stable")[: max(1, round(_TOP * n))]]
        rows, optimal = [], self._optimal_threshold(c)
        thresholds = [t for t in _THRESHOLDS if t == 0.5 or t >= rate / 5][:_N_THRESHOLDS]
        for t in sorted({*thresholds, *optimal}, reverse=True):
            flagged = p >= t
            right = f"{is_class[flagged].mean():.3f}" if flagged.any() else "-"
            shown = f"{t:.3g} (least loss)" if t in optimal else f"{t:g}"
            rows.append([shown, f"{flagged.sum():,}", f"{is_class[flagged].sum() / found:.3f}", right])
        header = [f"P({name}) at least", "rows", f"of all {name}, found", f"of these rows, {name}"]
        facts = {"estimate": estimate, "found": found, "rate": rate, "mean": p.mean(), "gap": _gap(p - is_class)}
        return _explain("rare_class", name=name, area=area, top=top, **facts), pd.DataFrame(rows, columns=header)

    def _each_class(self, estimate: str) -> tuple[str, pd.DataFrame]:
        """Return a text on the accuracy, and recall and precision of each class, the most frequent ones first."""
        choice, confidence = self.proba.argmax(axis=1), self.proba.max(axis=1)
        confusion = confusion_matrix(self.label, choice, labels=range(len(self.classes)))
        count, chosen, hits = confusion.sum(axis=1), confusion.sum(axis=0), confusion.diagonal()
        rows = []
        for c in np.argsort(-count, kind="stable")[:_MOST_CLASSES]:
            shares = [f"{hits[c] / total:.3f}" if total else "-" for total in (count[c], chosen[c])]
            rows.append([self.classes[c], f"{count[c]:,}", f"{count[c] / len(choice):.3f}", f"{chosen[c]:,}", *shares])
        right = choice == self.label
        never = [name for name, n, k in zip(self.classes, count, chosen, strict=True) if n and not k]
        facts = {"estimate": estimate, "accuracy": right.mean(), "confidence": confidence.mean(), "never": never}
        text = _explain("each_class", **facts, gap=_gap(confidence - right), n=len(count), most=_MOST_CLASSES)
        return text, pd.DataFrame(rows, columns=["class", "rows", "rate", "predicted", "found", "right"])


def _gap(differences: np.ndarray) -> Difference:
    """Return the mean of stated less observed, row by row, with its standard error."""
    return Difference(float(differences.mean()), float(np.std(differences) / sqrt(len(differences))), NOISE)
