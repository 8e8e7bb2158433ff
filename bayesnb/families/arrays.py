"""Arrays of NumPy and JAX: formulas written once, which the type of an array evaluates by one or the other.

`xp.f(…)` is `numpy.f` unless an argument is a JAX array, then `jax.numpy.f`; likewise the functions below. A function
that is written with them is a `kernel`: on few numbers NumPy evaluates it as it stands, which takes microseconds where
compilation takes a second; on many numbers, on JAX arrays, and under `jit`, `grad` or `vmap`, JAX does. Families are
pytrees of such arrays.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import partial, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.special
from jaxtyping import Float, Integer

from bayesnb._util.html import card, format_number, table

T = TypeVar("T")
Tree = TypeVar("Tree")
"""Type of a pytree of arrays, or of one array."""
Carry = TypeVar("Carry")
Array = jax.Array | np.ndarray
Index = Array | tuple[Array, ...]
Function = Callable[..., Any]
"""Function whose results are of NumPy or of JAX, as the arguments are."""

# == Formulas written once that run in NumPy on NumPy arrays, without compilation, and in JAX on JAX's

FEW = 2**16
"""Most numbers in the arguments of a kernel that NumPy evaluates: a few milliseconds of its time."""

_quiet: ContextVar[bool] = ContextVar("_quiet", default=False)
"""Whether a kernel has switched NumPy's warnings off: the switch takes as long as a function of few numbers."""


_OF_JAX = jax.Array, type(jax.export.symbolic_shape("n")[0])
"""Types of arguments with which JAX computes: arrays, and lengths that `jax.export` leaves open."""


def is_host(*trees: object) -> bool:
    """Whether no leaf of the arguments is a JAX array, so that NumPy can compute with them."""
    return not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(trees))


def _are_host(arguments: Iterable[object]) -> bool:
    """`is_host` of the arguments of a function of arrays, which may stand in a list or tuple."""
    for argument in arguments:
        if isinstance(argument, _OF_JAX):
            return False
        if isinstance(argument, list | tuple) and not _are_host(argument):
            return False
    return True


def either(of_numpy: Callable[..., object], of_jax: Callable[..., T]) -> Callable[..., T]:
    """Function that computes by `of_jax` if an argument is a JAX array, else by `of_numpy`, without its warnings."""

    @wraps(of_numpy)
    def call(*args: object, **kwargs: object) -> T:
        if not (_are_host(args) and _are_host(kwargs.values())):
            return of_jax(*args, **kwargs)
        if _quiet.get():
            return of_numpy(*args, **kwargs)
        with np.errstate(all="ignore"):  # as JAX does; probabilities may be 0, and their logarithms -inf
            return of_numpy(*args, **kwargs)

    return call


class _Namespace(ModuleType):
    """Constants and types of `numpy`, and functions that compute by `jax.numpy` if an argument is a JAX array."""

    def __getattr__(self, name: str) -> object:
        value = getattr(np, name)
        if callable(value) and not isinstance(value, type):
            value = either(value, getattr(jnp, name))
        vars(self)[name] = value  # found without `__getattr__` the next time
        return value


if TYPE_CHECKING:
    xp = jnp
else:
    xp = _Namespace("xp")


gammaln = either(scipy.special.gammaln, jax.scipy.special.gammaln)
"""Elementwise log |Γ(x)|."""
log_ndtr = either(scipy.special.log_ndtr, jax.scipy.special.log_ndtr)
"""Elementwise log distribution function of the standard normal."""
sigmoid = either(scipy.special.expit, jax.nn.sigmoid)
"""Elementwise 1/(1 + e^-x)."""
log_sigmoid = either(lambda x: -np.logaddexp(0.0, -np.asarray(x)), jax.nn.log_sigmoid)
"""Elementwise -log(1 + e^-x)."""
cumlogsumexp = either(np.logaddexp.accumulate, jax.lax.cumlogsumexp)
"""Cumulative log Σ exp(x) along `axis`, counted from the first."""


def kernel(function: Function | None = None, /, **options: Any) -> Function:
    """Decorate a function of pytrees of arrays: NumPy evaluates it on few numbers, and JAX compiles it for others.

    `options` are those of `jax.jit`. Arguments that are JAX arrays, on a device or under a transformation, stay JAX's.
    """
    if function is None:
        return partial(kernel, **options)
    of_few, compiled = function, jit_of_any_layout(function, **options)

    @wraps(of_few)
    def call(*args: object, **kwargs: object) -> object:
        if not are_few(args, kwargs):
            return compiled(*args, **kwargs)
        token = _quiet.set(True)
        try:
            with np.errstate(all="ignore"):
                return of_few(*args, **kwargs)
        finally:
            _quiet.reset(token)

    return call


def jit_of_any_layout(function: Function, **options: Any) -> Function:
    """Compile a function once for pytrees of arrays of the same shapes: arrays in static fields are arguments, too.

    `jax.jit`, which takes `options`, compiles for each value of a static field.
    """

    @partial(jax.jit, **options)
    @wraps(function)
    def compiled(*args: object, **kwargs: object) -> object:
        return _loosen(function(*_fasten(args), **_fasten(kwargs)))

    @wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        return _fasten(compiled(*_loosen(args), **_loosen(kwargs)))

    call.clear_cache = compiled.clear_cache  # type: ignore[attr-defined]
    return call


def are_few(*trees: object) -> bool:
    """Whether the leaves are NumPy's, with at most `FEW` numbers in all."""
    room = FEW
    for leaf in jax.tree.leaves(trees):
        if isinstance(leaf, jax.Array):
            return False
        room -= getattr(leaf, "size", 0)
    return room >= 0


def cond(predicate: object, on_true: Callable[..., T], on_false: Callable[..., T], *operands: object) -> T:
    """Result of `on_true(*operands)` or of `on_false(*operands)`; both must have the same shapes."""
    if is_host(predicate):
        return (on_true if predicate else on_false)(*operands)
    return jax.lax.cond(predicate, on_true, on_false, *operands)


def apply_where(condition: Array, function: Function, otherwise: float | Array, *operands: Array) -> jax.Array:
    """Elementwise `function(*operands)` where `condition` is true, and `otherwise` elsewhere, all of the same shape.

    NumPy evaluates the function only where the condition is true; JAX evaluates it everywhere and selects.
    """
    if not _are_host((condition, otherwise, operands)):
        return jnp.where(condition, function(*operands), otherwise)
    value = np.full(np.shape(condition), otherwise)
    if condition.any():
        value[condition] = function(*(operand[condition] for operand in operands))
    return value


def map_leading_axis(function: Callable[[Tree], T], arrays: Tree, batch_size: int | None = None) -> T:
    """Apply a function to each entry of the arrays' leading axis, and stack the results.

    JAX computes `batch_size` entries at a time; None: one.
    """
    if is_host(arrays) and (n := len(jax.tree.leaves(arrays)[0])):
        return _stack([function(_entry(arrays, i)) for i in range(n)])
    return jax.lax.map(function, arrays, batch_size=batch_size)


def map_parts(function: Callable[[Tree], T], arrays: Tree, size: int) -> T:
    """Results of a function of arrays with one leading axis, `size` entries at a time."""
    if not is_host(arrays):
        one_by_one = map_leading_axis(lambda one: function(jax.tree.map(lambda v: v[None], one)), arrays, size)
        return jax.tree.map(lambda v: v[:, 0], one_by_one)
    starts = range(0, max(1, len(jax.tree.leaves(arrays)[0])), size)
    with np.errstate(all="ignore"):  # as JAX does; concentrations may be 0
        parts = [function(jax.tree.map(lambda v: v[i : i + size], arrays)) for i in starts]  # noqa: B023
    return jax.tree.map(lambda *leaves: xp.concatenate(leaves), *parts)


def scan(step: Callable[[Carry, Tree], tuple[Carry, T]], start: Carry, arrays: Tree, **options: Any) -> tuple[Carry, T]:
    """Carry `start` through the entries of the arrays' leading axis: `jax.lax.scan`, whose options are taken."""
    if not is_host(start, arrays) or not (n := len(jax.tree.leaves(arrays)[0])):
        return jax.lax.scan(step, start, arrays, **options)
    results: dict[int, T] = {}
    for i in range(n)[:: -1 if options.get("reverse") else 1]:
        start, results[i] = step(start, _entry(arrays, i))
    return start, _stack([results[i] for i in range(n)])


def _entry(tree: Tree, i: int) -> Tree:
    """Entry i of the leading axis of all leaves."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[i], tree)


def _stack(trees: Sequence[Tree]) -> Tree:
    """One pytree whose leaves are those of the given pytrees, stacked on a leading axis."""
    return jax.tree.map(lambda *leaves: xp.stack(leaves), *trees)


def gather(table: Array, index: Index) -> jax.Array:
    """Entries of `table` at indices of its first axis, or of its first axes by a tuple.

    Past the end of the first axis, in padding, they are those of the last index.
    """
    if is_host(table, index):
        first, *others = index if isinstance(index, tuple) else (index,)
        return np.asarray(table)[(np.minimum(first, len(table) - 1), *others)]
    return jnp.asarray(table).at[index].get(mode="promise_in_bounds")


def add_at(array: Array, index: Array, values: Array) -> jax.Array:
    """Copy of `array` with values added at indices of its first axis; indices past the end are dropped."""
    if not is_host(array, index, values):
        return jnp.asarray(array).at[index].add(values, mode="drop")
    total = np.concatenate([array, np.zeros((1, *np.shape(array)[1:]))])
    np.add.at(total, np.minimum(index, len(array)), values)
    return total[:-1]


def set_at(array: Array, index: Index, values: float | Array) -> jax.Array:
    """Copy of `array` with values set at indices of its first axis; indices past the end are dropped."""
    if not is_host(array, index, values):
        return jnp.asarray(array).at[index].set(values, mode="drop")
    changed = np.concatenate([array, array[:1]])
    first, *others = index if isinstance(index, tuple) else (index,)
    changed[(np.minimum(first, len(array)), *others)] = values
    return changed[:-1]


def csr_product(matrix: tuple[Array, Array, Array], shape: tuple[int, int], table: Array) -> jax.Array:
    """(N, C) product of a sparse `matrix` (data, indices, indptr) in CSR form, `shape` (N, L), and a `table` (L, C)."""
    if is_host(matrix, table):
        return scipy.sparse.csr_array(matrix, shape) @ table
    from jax.experimental.sparse import BCSR  # here, as its import takes long

    # BCSR is Eigen's product on a CPU. What plain JAX has took longer, measured on 16,384 rows of 47 entries: the same
    # in chunks of 16 entries twice as long, segment sums of gathered rows eight times, differences of running sums 24.
    data, indices, indptr = map(jnp.asarray, matrix)
    # In fours: two columns take longer than four, and six than eight.
    padded = jnp.pad(table, ((0, 0), (0, -table.shape[1] % 4)))
    return (BCSR((data, indices, indptr), shape=shape) @ padded)[:, : table.shape[1]]


def square_limit(values: Array) -> float:
    """Limit below which the squares of numbers of the type of `values` do not overflow: 1e147 in float64."""
    return float(np.finfo(values.dtype).max) ** 0.48


def sum_rows(rows: Float[Array, "N ..."], index: Integer[Array, "N"], n: int) -> jax.Array:
    """(n, …) sums of the rows of each index 0 … n - 1, in the order of the rows; larger indices are dropped."""
    if not is_host(rows, index):
        return jax.ops.segment_sum(rows, index, n)
    (n_rows, *shape), index = np.shape(rows), np.minimum(index, n)
    indicators = scipy.sparse.csc_array((np.ones(n_rows), index, np.arange(n_rows + 1)), (n + 1, n_rows))
    return np.reshape(indicators @ np.reshape(rows, (n_rows, math.prod(shape))), (n + 1, *shape))[:n]


def sum_weightings(
    rows: Array | tuple[Array, ...], index: Integer[Array, "N"], weight: Float[Array, "S N"], n: int, width: int = 0
) -> Float[jax.Array, "S n K"]:
    """(S, n, K) sums of `rows` (N, K) of each index 0 … n - 1 under each of S weightings, by products of matrices.

    Rows of NumPy may be a sparse matrix (data, indices, indptr) in CSR form with `width` columns.
    """
    if not is_host(rows, index, weight):
        indicators: jax.Array = jax.nn.one_hot(index, n, dtype=weight.dtype)
        return jnp.einsum("si,in,ik->snk", weight, indicators, rows)
    rows = scipy.sparse.csr_array(rows, (len(index), width)) if isinstance(rows, tuple) else rows
    sums = np.zeros((len(weight), n, rows.shape[1]))
    for at in np.unique(index):
        chosen = np.flatnonzero(index == at)
        sums[:, at] = weight.T[chosen].T @ rows[chosen]
    return sums


def zero_with_derivative(x: Array) -> jax.Array:
    """Zeros of the shape of x that have the derivatives of x, where x is finite."""
    return np.zeros(np.shape(x)) if is_host(x) else jnp.where(jnp.isfinite(x), x - jax.lax.stop_gradient(x), 0.0)


def logsumexp(x: Array, axis: int | None = None, where: Array | None = None, keepdims: bool = False) -> jax.Array:
    """Compute log Σ exp(x) over an axis, by NumPy unless x is a JAX array; -inf where all entries are."""
    if not is_host(x, where):
        return jax.nn.logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    x = np.asarray(x) if where is None else np.where(where, x, -np.inf)
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


def segment_sum(values: Float[Array, "*C E"], index: Integer[Array, "E"], n: int) -> jax.Array:
    """(…, n) sums of the entries of `values` (…, E) with each index 0 … n - 1; larger indices are dropped."""
    return xp.moveaxis(sum_rows(xp.moveaxis(values, -1, 0), index, n), 0, -1)


def segment_max(values: Float[Array, "*C E"], index: Integer[Array, "E"], n: int) -> jax.Array:
    """(…, n) largest of the entries of `values` (…, E) with each index 0 … n - 1, -inf where there is none."""
    if not is_host(values, index):
        return jnp.moveaxis(jax.ops.segment_max(jnp.moveaxis(values, -1, 0), index, n), 0, -1)
    top, order = np.full((*np.shape(values)[:-1], n), -np.inf), np.argsort(index, kind="stable")
    index, values = np.asarray(index)[order], np.asarray(values)[..., order]
    first = np.flatnonzero(np.diff(index, prepend=-1))
    if len(first):
        top[..., index[first]] = np.maximum.reduceat(values, first, axis=-1)
    return top


def log_segment_sum(values: Float[Array, "*C E"], index: Integer[Array, "E"], n: int) -> jax.Array:
    """(…, n) log Σ exp(values) over the entries (…, E) with each index 0 … n - 1, without overflow."""
    top = segment_max(values, index, n)
    top = xp.where(xp.isneginf(top), 0.0, top)
    return top + xp.log(segment_sum(xp.exp(values - top[..., index]), index, n))


# == Text and HTML of distributions and statistics: shapes and ranges of their arrays, which may be long

_NAMES = "A distribution, by class and feature; parameter_table(nb) has their names, and intervals."


def as_text(tree: object) -> str:
    """One-line text of a dataclass of arrays: class name, and shape and range of each field."""
    values = ", ".join(f"{name}={_field_text(value)}" for name, value in values_by_field(tree).items())
    return f"{type(tree).__name__}({values})"


def as_html(tree: object) -> str:
    """HTML card of a dataclass of arrays: a table row per array or number with its shape, least and greatest value."""
    notes = [_NAMES] * hasattr(tree, "update")
    return card(type(tree).__name__, "", table(_table_rows(tree, ""), ("", "shape", "least", "greatest")), notes=notes)


def _table_rows(tree: object, name: str) -> Iterator[tuple[str | float, ...]]:
    """Yield a table row (name, shape, least, greatest) per array or number in nested dataclasses at path `name`."""
    if is_dataclass(tree):
        for field, value in values_by_field(tree).items():
            yield from _table_rows(value, f"{name}.{field}" if name else field)
    elif isinstance(tree, tuple) and any(map(is_dataclass, tree)):
        for n, part in enumerate(tree):
            yield from _table_rows(part, f"{name}[{n}] {type(part).__name__}")
    elif (ends := _least_and_greatest(tree)) is not None:
        shape = np.asarray(tree).shape
        yield name, str(shape) if shape else "", *(ends or ("", ""))
    elif tree is not None and not callable(tree):
        yield name, "", format_number(tree), ""


def _field_text(value: object) -> str:
    """Text of one field: a number; shape and range of an array; a tuple by element; else `repr`.

    An array is "(2, 3) from 0 to 1", "(2, 3) of 1" if all entries are equal, and "(2, 3)" if it has no numbers.
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(_field_text, value))}{',' * (len(value) == 1)})"
    if (ends := _least_and_greatest(value)) is None:
        return repr(value)
    shape = np.asarray(value).shape
    if not ends or not shape:
        return format_number(ends[0]) if ends else f"{shape}"
    least, greatest = map(format_number, ends)
    return f"{shape} of {least}" if least == greatest else f"{shape} from {least} to {greatest}"


def _least_and_greatest(value: object) -> tuple[float, ...] | None:
    """Least and greatest number of an array, NaN skipped; () if there is none; None for other types and tracers."""
    if isinstance(value, jax.core.Tracer) or not isinstance(value, np.ndarray | np.generic | jax.Array):
        return None
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf" or not numbers.size or np.isnan(numbers).all():
        return ()
    return float(np.nanmin(numbers)), float(np.nanmax(numbers))


# == Arrays of JAX or NumPy, frozen dataclasses of them that are JAX pytrees, and JAX's maps with types


@dataclass_transform(frozen_default=True, eq_default=False)
def pytree(cls: type[T]) -> type[T]:
    """Class decorator: make `cls` a frozen dataclass and a JAX pytree; `static` fields go into the tree's structure.

    Arrays in static fields are NumPy's, and structures with equal arrays are equal.

    Not by `jax.tree_util.register_dataclass`: structures of two of its classes, with fields of the same names, compare
    equal (jax 0.10 and 0.12), and where their hashes meet, `jit` takes one class for the other.
    """
    defined, static_names = vars(cls), []  # type: tuple[Any, list[str]]

    def fix(tree: object) -> None:
        """Convert arrays of JAX in static fields to NumPy, unless they are traced."""
        for name in static_names:
            object.__setattr__(tree, name, _to_numpy(getattr(tree, name)))

    if any(isinstance(value, Field) and value.metadata.get("static") for value in defined.values()):
        cls.__post_init__ = fix  # type: ignore[attr-defined]
    made: Any = dataclass(frozen=True, eq=False, repr=False)(cls)
    for name, shown in (("__repr__", as_text), ("_repr_html_", as_html)):
        if name not in defined:
            setattr(made, name, shown)
    static_names += [f.name for f in fields(made) if f.metadata.get("static")]
    made._static_fields = tuple(static_names)
    data = tuple(f.name for f in fields(made) if f.name not in static_names)
    keys = tuple(map(jax.tree_util.GetAttrKey, data))

    def flatten(tree: object) -> tuple[tuple[object, ...], Static]:
        """Values of the data fields (children), and values of the static fields (auxiliary data)."""
        return tuple(getattr(tree, name) for name in data), Static(tuple(getattr(tree, name) for name in static_names))

    def flatten_with_keys(tree: object) -> tuple[tuple[tuple[object, object], ...], Static]:
        """Pairs (attribute key, value) of the data fields, and values of the static fields."""
        children, aux = flatten(tree)
        return tuple(zip(keys, children, strict=True)), aux

    def unflatten(aux: Static, children: Iterable[object]) -> T:
        """Rebuild the dataclass from its static and its data values: the inverse of `flatten`."""
        return made(**dict(zip((*data, *static_names), (*children, *aux.values), strict=True)))

    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten, flatten)
    jax.export.register_pytree_node_serialization(
        made,
        serialized_name=f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}",
        serialize_auxdata=Static.to_bytes,
        deserialize_auxdata=Static.from_bytes,
    )
    return made


def _to_numpy(value: object) -> object:
    """Value of a static field with arrays of JAX, also in a tuple, as NumPy's, unless they are traced."""
    if isinstance(value, tuple):
        return tuple(map(_to_numpy, value))
    return np.asarray(value) if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer) else value


class Static:
    """Values of static fields as hashable auxiliary data of a pytree: arrays are compared by their entries."""

    __slots__ = ("_key", "values")

    def __init__(self, values: tuple[object, ...]) -> None:
        self.values = values
        self._key: Hashable = None

    @property
    def key(self) -> Hashable:
        """Hashable equivalent of the values."""
        if self._key is None:
            self._key = _hashable(self.values)
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Static) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.values)

    def to_bytes(self) -> bytes:
        """Values as JSON, for `jax.export`; TypeError for functions, which likelihoods of rows have."""
        return json.dumps(_to_json(self.values)).encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> Self:
        """Inverse of `to_bytes`."""
        return cls(_from_json(json.loads(text)))


def _hashable(value: object) -> Hashable:
    """Hashable equivalent of a value, in which arrays, also in tuples, are their type, shape and bytes."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, jax.core.Tracer):
        return id(value)
    return tuple(map(_hashable, value)) if isinstance(value, tuple) else value


def _to_json(value: object) -> object:
    """Equivalent of a static value in JSON: arrays and tuples are objects."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "values": value.tolist()}
    return {"tuple": list(map(_to_json, value))} if isinstance(value, tuple) else value


def _from_json(value: object) -> Any:
    """Inverse of `_to_json`."""
    if isinstance(value, dict) and "dtype" in value:
        return np.asarray(value["values"], value["dtype"])
    return tuple(map(_from_json, value["tuple"])) if isinstance(value, dict) else value


def _has_arrays(value: object) -> bool:
    """Whether a value of a static field is an array or a tuple of arrays."""
    if isinstance(value, tuple):
        return bool(value) and all(map(_has_arrays, value))
    return isinstance(value, np.ndarray | jax.Array)


def _has_layout(node: object) -> bool:
    """Whether a node of a pytree is an object with arrays in static fields."""
    return any(_has_arrays(getattr(node, name)) for name in getattr(type(node), "_static_fields", ()))


def _loosen(tree: Tree) -> Tree:
    """Copy of a pytree in which arrays in static fields are leaves: objects that have them become `_Loose`."""

    def loosen(node: Any) -> object:
        if not _has_layout(node):
            return node
        names, values = type(node)._static_fields, values_by_field(node)
        arrays = {name: values.pop(name) for name in names if _has_arrays(values[name])}
        others = tuple((name, values.pop(name)) for name in names if name in values)
        return _Loose(_loosen(values), arrays, type(node), others)

    return jax.tree.map(loosen, tree, is_leaf=_has_layout)


def _fasten(tree: Tree) -> Tree:
    """Inverse of `_loosen`."""

    def fasten(node: object) -> object:
        if not isinstance(node, _Loose):
            return node
        return node.cls(**_fasten(node.data), **node.arrays, **dict(node.others))

    return jax.tree.map(fasten, tree, is_leaf=lambda node: isinstance(node, _Loose))


def values_by_field(tree: Any) -> dict[str, Any]:
    """Values of the fields of a dataclass, by name."""
    return {field.name: getattr(tree, field.name) for field in fields(tree)}


def static() -> Any:
    """Dataclass field of a `pytree` class that belongs to the tree's structure, so that `jit` compiles per value."""
    return field(metadata={"static": True})


def same_structure(tree: object, other: object) -> bool:
    """Whether two pytrees are of the same classes, with the same static fields."""
    return operator.eq(*map(jax.tree.structure, (tree, other)))


def map_leaves(function: Callable[..., object], tree: Tree, *others: Tree) -> Tree:
    """Apply a function to the corresponding arrays of pytrees of one type; return a pytree of that type."""
    return jax.tree.map(function, tree, *others)


@pytree
class _Loose:
    """Object of a class `cls` whose arrays in static fields are data, as `data` are; `others` are its static fields."""

    data: dict[str, object]
    arrays: dict[str, object]
    cls: type = static()
    others: tuple[tuple[str, object], ...] = static()
