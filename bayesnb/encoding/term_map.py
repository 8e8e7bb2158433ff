"""Terms of a classifier as sums and differences of the terms of its blocks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from bayesnb.encoding.columns import Columns, UnknownPolicy, ignore_unknown
from bayesnb.encoding.level_columns import LevelColumns
from bayesnb.encoding.levels import Factors
from bayesnb.encoding.row_blocks import CodedRows

DEPENDENCE = "{} | parents"
"""Name of the term of a column's dependence on its parents."""


@dataclass(frozen=True, eq=False)
class RootColumns(LevelColumns):
    """Features given the class alone, whose terms are subtracted from the terms of the same features given parents.

    The difference is the dependence of each feature on its parents.
    """

    role: ClassVar[Literal["root", "margin"] | None] = "root"

    def code_rows(self, factors: Factors, policy: UnknownPolicy | None = None) -> CodedRows:
        """Return coded cells; unknown values are reported by the block of the features given parents, not here."""
        return super().code_rows(factors, ignore_unknown)


class MarginColumns(RootColumns):
    """Features given the class alone, with the prior of naive Bayes, beside a block of the features given parents."""

    role: ClassVar[Literal["root", "margin"] | None] = "margin"


@dataclass(frozen=True, eq=False)
class TermMap:
    """T terms of a classifier, each a sum of terms of its blocks minus others.

    A column without parents is one term, its margin log p(x_j | c). A column whose parents' table stands beside a
    margin has two: the margin, which is the density of a number and the table given the class alone of a level, and
    the dependence log p(q_j | c, parents) - log p(q_j | c), q_j the cell or the level.

    Parameters
    ----------
    names : tuple of str
        Names of the T terms.
    dependence : (T,) bool array
        Whether each term is a dependence on parents.
    plus, minus : (R,) int arrays
        For each of the R terms of the blocks the term of the classifier that it is added to, and the one that it is
        subtracted from; -1 for none.
    """

    names: tuple[str, ...]
    dependence: np.ndarray
    plus: Int[np.ndarray, "R"]
    minus: Int[np.ndarray, "R"]

    @classmethod
    def from_blocks(cls, blocks: Sequence[Columns]) -> TermMap:
        """Return the map from the terms of these blocks to a classifier's: margins, then dependences on parents."""
        alone = [columns for columns in blocks if columns.network is None]
        roots = {j for columns in alone if columns.role == "root" for j in columns.index}
        margins = {j for columns in alone if columns.role != "root" for j in columns.index}
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
                margin, dependence, is_root = j, ("dependence", j), columns.role == "root"
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
            names, dependences = dict(sorted(names.items())), dict(sorted(dependences.items()))
        position = {key: t for t, key in enumerate([*names, *dependences])}
        terms = [np.array([-1 if key is None else position[key] for key in keys], int) for keys in (plus, minus)]
        return cls((*names.values(), *dependences.values()), np.arange(len(position)) >= len(names), *terms)

    @property
    def is_identity(self) -> bool:
        """Whether each term of the blocks is, unchanged, a term of the classifier."""
        return bool((self.minus < 0).all() and (self.plus >= 0).all())

    def combine(self, values: Float[np.ndarray, "... R"]) -> Float[np.ndarray, "... T"]:
        """Return the T terms of the classifier from the R terms of the blocks, on the last axis.

        A term of -inf that is subtracted counts as 0.
        """
        if self.is_identity:
            return values
        terms = np.zeros((*values.shape[:-1], len(self.names)))
        for r in range(values.shape[-1]):
            if self.plus[r] >= 0:
                terms[..., self.plus[r]] += values[..., r]
            if self.minus[r] >= 0:
                terms[..., self.minus[r]] -= np.where(np.isneginf(values[..., r]), 0.0, values[..., r])
        return terms

    def spread(self, weight: Float[np.ndarray, "*S T"]) -> Float[np.ndarray, "*S R"]:
        """Return R weights of the blocks' terms, which give the same sum as T `weight` of the classifier's terms."""
        padded = np.concatenate([weight, np.zeros((*weight.shape[:-1], 1))], axis=-1)
        return np.asarray(padded[..., self.plus] - padded[..., self.minus])

    def gather(self, weight: Float[np.ndarray, "R"]) -> Float[np.ndarray, "T"]:
        """Return T weights of the classifier's terms from R of the blocks' terms: the inverse of `spread`."""
        terms = np.zeros(len(self.names))
        for r in np.argsort(self.minus >= 0, kind="stable"):
            if self.plus[r] >= 0:
                terms[self.plus[r]] = weight[r] + (terms[self.minus[r]] if self.minus[r] >= 0 else 0.0)
        return terms
