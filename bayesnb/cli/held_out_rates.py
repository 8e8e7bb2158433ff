"""Rates of the classes on held-out rows, and how many rows of a class are found: what a decision rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from bayesnb.cli.document import Block, Paragraph, Section, Table
from bayesnb.cli.fitting import Fits
from bayesnb.cli.terminal import enumerate_names

_THRESHOLDS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_N_THRESHOLDS = 5
_MOST_CLASSES = 12
_TOP = 0.1
_NOISE = 2.0


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
        n, share = len(self.label), count[most] / len(self.label)
        guess = f"Always predicting “{self.classes[most]}” is right for {share:.1%} of {n:,} held-out rows"
        if len(self.classes) == 2 and count.min():
            text, table = self._rare_class(1 - most, estimate)
        else:
            text, table = self._each_class(count, estimate)
        blocks: list[Block] = [Paragraph(f"{guess}{text}"), Table.from_frame(table)]
        if self.losses is not None:
            blocks.append(Paragraph(self._describe_costs(estimate)))
        return Section("What a decision rests on", tuple(blocks))

    def _describe_costs(self, estimate: str) -> str:
        """Return a text on the cost of decisions by the probabilities, beside that of one action for all rows."""
        assert self.losses is not None
        loss, actions = self.losses.to_numpy(float), list(map(str, self.losses.index))
        risk = self.proba @ loss.T
        chosen, constant = risk.argmin(axis=1), loss[:, self.label].mean(axis=1)
        best, taken = int(constant.argmin()), np.bincount(chosen, minlength=len(actions))
        counts = enumerate_names([f"“{name}” for {n:,} rows" for name, n in zip(actions, taken, strict=True) if n], 6)
        return (
            f"The action of least expected loss by the {estimate} estimate is {counts}. It costs "
            f"{loss[chosen, self.label].mean():.4g} a row ({risk.min(axis=1).mean():.4g} expected); always "
            f"“{actions[best]}” costs {constant[best]:.4g}."
        )

    def _optimal_threshold(self, c: int) -> float | None:
        """Return P(class c) from which the better of two actions changes, None without such losses of two classes."""
        if self.losses is None or self.losses.shape != (2, 2):
            return None
        # Loss of the first action less that of the second, if the row is of the class, and if it is not.
        of_class, of_other = (float(np.diff(self.losses.to_numpy(float)[::-1, k])[0]) for k in (c, 1 - c))
        return of_other / (of_other - of_class) if of_class * of_other < 0 else None

    def _rare_class(self, c: int, estimate: str) -> tuple[str, pd.DataFrame]:
        """Return a text on the rarer of two classes, and its recall and precision at several thresholds."""
        name, is_class, p = self.classes[c], self.label == c, self.proba[:, c]
        n, found, rate = len(p), int(is_class.sum()), float(is_class.mean())
        area = float(roc_auc_score(is_class, p))
        # Standard error of the area if the probabilities say nothing (Mann and Whitney 1947).
        chance = sqrt((n + 1) / (12.0 * found * (n - found)))
        top = np.argsort(-p, kind="stable")[: max(1, round(_TOP * n))]
        if area - 0.5 > _NOISE * chance:
            finds = (
                f"The {estimate} estimate finds more: of the {len(top):,} rows with the highest P({name}) "
                f"{int(is_class[top].sum()):,} are “{name}” ({is_class[top].mean():.0%}, by chance {rate:.1%}), which "
                f"is {is_class[top].sum() / found:.0%} of all “{name}”. P({name}) is higher for a row of “{name}” than "
                f"for another row in {area:.0%} of the pairs (50% by chance)."
            )
        else:
            finds = (
                f"The {estimate} estimate does not find more than chance: P({name}) is higher for a row of "
                f"“{name}” than for another row in {area:.0%} of the pairs, and chance is 50% ± {chance:.0%}."
            )
        gap, se = float(p.mean()) - rate, float(np.std(p - is_class) / sqrt(n))
        states = f"P({name}) is {p.mean():.1%} on average, and {rate:.1%} of the rows are “{name}”: the gap is "
        states += f"{'within' if abs(gap) <= _NOISE * se else 'more than'} noise ({gap:+.1%} ± {se:.1%})."
        rows, optimal = [], self._optimal_threshold(c)
        thresholds = [t for t in _THRESHOLDS if t == 0.5 or t >= rate / 5][:_N_THRESHOLDS]
        for t in sorted({*thresholds, *([] if optimal is None else [optimal])}, reverse=True):
            flagged = p >= t
            right = f"{is_class[flagged].mean():.3f}" if flagged.any() else "-"
            shown = f"{t:.3g} (least loss)" if t == optimal else f"{t:g}"
            rows.append([shown, f"{flagged.sum():,}", f"{is_class[flagged].sum() / found:.3f}", right])
        header = [f"P({name}) at least", "rows", f"of all {name}, found", f"of these rows, {name}"]
        text = f", and finds none of the {found:,} “{name}” ({rate:.1%}). {finds} {states}"
        return text, pd.DataFrame(rows, columns=header)

    def _each_class(self, count: np.ndarray, estimate: str) -> tuple[str, pd.DataFrame]:
        """Return a text on the accuracy, and recall and precision of each class, the most frequent ones first."""
        choice = self.proba.argmax(axis=1)
        right = choice == self.label
        rows = []
        for c in np.argsort(-count, kind="stable")[:_MOST_CLASSES]:
            n, chosen = int(count[c]), int((choice == c).sum())
            hits = int((right & (choice == c)).sum())
            shares = [f"{hits / total:.3f}" if total else "-" for total in (n, chosen)]
            rows.append([self.classes[c], f"{n:,}", f"{n / len(choice):.3f}", f"{chosen:,}", *shares])
        confidence = self.proba.max(axis=1)
        gap, se = float(confidence.mean() - right.mean()), float(np.std(confidence - right) / sqrt(len(right)))
        never = [name for c, name in enumerate(self.classes) if count[c] and not (choice == c).any()]
        text = (
            f". The {estimate} estimate is right for {right.mean():.1%}, and states {confidence.mean():.1%}: the gap "
        )
        text += f"is {'within' if abs(gap) <= _NOISE * se else 'more than'} noise ({gap:+.1%} ± {se:.1%})."
        if never:
            text += f" It never predicts {enumerate_names(never, 6)}."
        if len(count) > _MOST_CLASSES:
            text += f" The table has the {_MOST_CLASSES} most frequent of {len(count)} classes."
        header = ["class", "rows", "rate", "predicted", "found", "right"]
        return text, pd.DataFrame(rows, columns=header)
