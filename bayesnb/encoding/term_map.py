"""Terms of a classifier as sums and differences of the terms of its blocks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from bayesnb.encoding.columns import Columns, UnknownPolicy
from bayesnb.encoding.level_columns import LevelColumns
from bayesnb.encoding.levels import Factors
from bayesnb.encoding.row_blocks import CodedRows

DEPENDENCE = "{} | parents"
"""Name of the dependence of a column on its parents."""


@dataclass(frozen=True, eq=False)
class RootColumns(LevelColumns):
    """Features given the class alone, which another block has given their parents.

    The terms of the other block minus those of this one are the features' dependence on their parents.
    """

    beside: ClassVar[str | None] = "root"

    def rows(self, opened: Factors, policy: UnknownPolicy | None = None) -> CodedRows:
        """Coded cells; values that are no level are reported by the other block."""
        return super().rows(opened, lambda columns, unknown: None)


class MarginColumns(RootColumns):
    """Features given the class alone, as naive Bayes has them, whose prior differs from that of the other block."""

    beside: ClassVar[str | None] = "margin"


def select_level_columns(kind: type[RootColumns], base: LevelColumns, features: Sequence[int]) -> RootColumns:
    """Return some of the features, by their positions in `base`, as columns given the class alone."""
    own: dict[str, Any] = {name: getattr(base, name) for name in ("n_features", "unknown", "missing_values")}
    for name in ("index", "names", "levels", "declared", "cuts"):
        values = getattr(base, name)
        own[name] = tuple(values[j] for j in features) if len(values) else ()
    if all(cuts is None for cuts in own["cuts"]):
        own["cuts"] = ()
    return kind(**own)


@dataclass(frozen=True, eq=False)
class TermMap:
    """T terms of a classifier, each a sum of terms of its blocks minus others.

    A column without parents is one term, its margin log p(x_j | c). A column whose parents' table stands beside a
    margin has two: the margin, which is the density of a number and the table given the class alone of a level, and
    the dependence log p(q_j | c, parents) - log p(q_j | c), q_j the cell or the level.

    Parameters
    ----------
    names : tuple of str
        Of the T terms.
    dependence : (T,) bool array
        Which terms are dependences.
    plus, minus : (R,) int arrays
        For each term of the blocks the term of the classifier that it is added to, and subtracted from; -1 for none.
    """

    names: tuple[str, ...]
    dependence: np.ndarray
    plus: Int[np.ndarray, "R"]
    minus: Int[np.ndarray, "R"]

    @classmethod
    def of(cls, blocks: Sequence[Columns]) -> TermMap:
        """Return the terms of a classifier with these blocks of columns."""
        alone = [columns for columns in blocks if columns.network is None]
        roots = {j for columns in alone if columns.beside == "root" for j in columns.index}
        margins = {j for columns in alone if columns.beside != "root" for j in columns.index}
        names, dependences = dict[Hashable, str](), dict[Hashable, str]()
        plus, minus = list[Hashable | None](), list[Hashable | None]()
        for b, columns in enumerate(blocks):
            # All draws from a simplex are one term, and all arcs of trees are one more.
            if columns.one_simplex or len(columns.term_names) != len(columns.index):
                names |= {(b, t): name for t, name in enumerate(columns.term_names)}
                plus += [(b, t) for t in range(len(columns.term_names))]
                minus += [None] * len(columns.term_names)
                continue
            for j, name in zip(columns.index, columns.names, strict=True):
                margin, dependence, is_root = j, ("dependence", j), columns.beside == "root"
                if columns.network is not None and j in roots:
                    dependences[dependence] = DEPENDENCE.format(name)
                    plus.append(dependence)
                elif j in margins and (is_root or columns.network is not None):
                    plus.append(None)
                else:
                    names[margin] = name
                    plus.append(margin)
                minus.append(dependence if is_root else None)
        if dependences:  # in the order of the table
            names, dependences = (dict(sorted(own.items())) for own in (names, dependences))
        position = {key: t for t, key in enumerate([*names, *dependences])}
        at = [np.array([-1 if key is None else position[key] for key in side], int) for side in (plus, minus)]
        return cls((*names.values(), *dependences.values()), np.arange(len(position)) >= len(names), *at)

    @property
    def is_identity(self) -> bool:
        """Whether each term of the blocks is a term of the classifier."""
        return bool((self.minus < 0).all() and (self.plus >= 0).all())

    def combine(self, values: Float[np.ndarray, "... R"]) -> Float[np.ndarray, "... T"]:
        """Return the terms of the classifier from those of the blocks."""
        if self.is_identity:
            return values
        found = np.zeros((*values.shape[:-1], len(self.names)))
        for r in range(values.shape[-1]):
            if self.plus[r] >= 0:
                found[..., self.plus[r]] += values[..., r]
            if self.minus[r] >= 0:
                found[..., self.minus[r]] -= np.where(np.isneginf(values[..., r]), 0.0, values[..., r])
        return found

    def spread(self, weight: Float[np.ndarray, "*S T"]) -> Float[np.ndarray, "*S R"]:
        """Return the weights of the blocks' terms under which their sum is that of the weighted terms."""
        padded = np.concatenate([weight, np.zeros((*weight.shape[:-1], 1))], axis=-1)
        return padded[..., self.plus] - padded[..., self.minus]

    def gather(self, weight: Float[np.ndarray, "R"]) -> Float[np.ndarray, "T"]:
        """Invert `spread`."""
        found = np.zeros(len(self.names))
        for r in np.argsort(self.minus >= 0, kind="stable"):
            if self.plus[r] >= 0:
                found[self.plus[r]] = weight[r] + (found[self.minus[r]] if self.minus[r] >= 0 else 0.0)
        return found


__all__ = ["DEPENDENCE", "MarginColumns", "RootColumns", "TermMap", "select_level_columns"]
