"""Variables of a network given others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb import scoring
from bayesnb._util.arguments import require_mapping, shown
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, Levels, NodeColumns
from bayesnb.families import Dirichlet
from bayesnb.fitted import Fitted
from bayesnb.model import Estimate
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd


class Queries:
    """What a classifier with arcs answers about its variables."""

    encoding_: Encoding
    fitted_: Fitted
    parents_: Any

    @property
    def _nodes(self) -> NodeColumns | None:
        raise NotImplementedError

    def query(self, variables: Any, given: Mapping[Any, Any] | None = None) -> pd.Series:
        """P(variables | given) under the posterior predictive of a row, exactly, for any variables of the network.

        Parameters
        ----------
        variables : name or list of names
            Categorical columns, or "(class)".
        given : dict {name: value}, optional
            Of columns or the class. What is neither asked nor given is summed out.

        Returns
        -------
        Series
            Indexed by the values of what is asked: one level of the index a variable.

        Raises
        ------
        ValueError
            If a name or value is unknown; if what is given has probability 0; if a table on the way would be too large.

        Notes
        -----
        A row's parameters are independent of each other, each used once, so that its predictive distribution is the
        network with all probabilities at their posterior means. `predict_proba` is this of the class, given the cells
        that a row has.

        Examples
        --------
        >>> from bayesnb import NetworkNB
        >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "wet"]]
        >>> nb = NetworkNB({1: 0}).fit(X, ["in", "in", "out", "in"])
        >>> nb.query("0", {"1": "wet"}).round(2)
        0
        rain    0.59
        sun     0.41
        Name: P, dtype: float64
        """
        import pandas as pd

        from bayesnb.networks.inference import conditional

        check_is_fitted(self)
        levels = self._variables()
        if CLASS in self.parents_:
            raise ValueError(f"query: a column is called {CLASS!r} as the class is; rename it.")
        one = isinstance(variables, str) or not isinstance(variables, Iterable)
        asked = [self._variable(v, levels) for v in ([variables] if one else variables)]
        if not asked or len(set(asked)) < len(asked):
            raise ValueError(f"variables={shown(variables)} must name one variable or more, each once.")
        given = {} if given is None else given
        require_mapping("given", given, "{'wind': 'strong'}")
        at: dict[Hashable, int] = {}
        for name, value in given.items():
            variable = self._variable(name, levels)
            if variable in asked:
                raise ValueError(f"given: {shown(variable)} is asked for as well.")
            at[variable] = int(Levels(tuple(levels[variable])).index([value])[0])
            if at[variable] < 0:
                raise ValueError(
                    f"given: {shown(value)} is no value of {shown(variable)}, which has {levels[variable][:12]}."
                )
        found = conditional(self._factors(), asked, at)
        index = pd.MultiIndex.from_product([levels[v] for v in asked], names=asked)
        return pd.Series(found.ravel(), index.get_level_values(0) if len(asked) == 1 else index, name="P")

    def _variables(self) -> dict[str, list[Hashable]]:
        """Values of the class and of each categorical column."""
        found: dict[str, list[Hashable]] = {CLASS: list(self.encoding_.classes.values)}
        if (columns := self._nodes) is not None:
            found |= {columns.base.names[j]: columns.base.level_names(j) for j in sorted(n[0] for n in columns.nodes)}
        return found

    def _variable(self, name: Any, levels: Mapping[str, Any]) -> str:
        if isinstance(name, Hashable) and name in levels:
            return str(name)
        columns = self._nodes
        if isinstance(name, int | np.integer) and columns is not None:
            of_index = dict(zip(columns.index, columns.names, strict=True))
            if int(name) in of_index:
                return of_index[int(name)]
        raise ValueError(f"query: there is no categorical variable {shown(name)}; there are {list(levels)[:12]}.")

    def _factors(self) -> list[tuple[tuple[Hashable, ...], np.ndarray]]:
        """p(class), and p(column | class, parents) at their posterior means."""
        fitted = self.fitted_
        found: list[tuple[tuple[Hashable, ...], np.ndarray]] = [((CLASS,), np.exp(fitted.class_log_prior))]
        for columns, family in zip(fitted.encoding.blocks, fitted.posterior.blocks, strict=True):
            if (network := columns.network) is not None:
                # A value of the parents that a class never had has probability 0 there, whatever follows from it.
                estimated = with_estimates(network, family, "mean")
                theta = np.exp(scoring.plug_in(estimated).log_theta)
                names = network.base.names
                for (child, *parents), table in zip(network.nodes, network.tables(theta), strict=True):
                    # A missing parent may be a value too, behind the others; here it is summed out.
                    table = table[(slice(None), *(slice(n) for n in network.base.sizes()[parents]))]
                    found.append(((CLASS, *(names[p] for p in parents), names[child]), table))
        return found


@float64
def with_estimates(columns: NodeColumns, family: Dirichlet, reading: Estimate) -> Dirichlet:
    """The posterior, uniform given those values of parents for which there is no estimate."""
    log_theta = (family.mode() if reading == "map" else family.mean()).log_theta
    if not np.isnan(log_theta).any():
        return family
    has_parents = np.repeat([len(node) > 1 for node in columns.nodes], columns.sizes())
    return replace(family, concentration=np.where(has_parents & np.isnan(log_theta), 2.0, family.concentration))


__all__ = ["Queries", "with_estimates"]
