"""Converters of four classifiers to ONNX, for skl2onnx (pip install skl2onnx onnxruntime).

    onnx_export.register()
    model = skl2onnx.to_onnx(nb, X[:1])  # or a pipeline that ends with nb

Every classifier here has log p(class, row) = log P(class) + a sum of terms. `joint_log_prob` writes this sum as a graph
in float64, whatever the precision of the rows; softmax and argmax follow. Only the terms differ between classifiers.
"""

from __future__ import annotations

from functools import partial, partialmethod

import jax
import numpy as np
from onnx import TensorProto, numpy_helper
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

import bayesnb as bnb


class Tensor:
    """Named tensor in the graph of one conversion, or a new constant; operators such as `+` and `@` append a node."""

    def __init__(self, graph, value) -> None:
        self.graph, self.name = graph, value
        if not isinstance(value, str):
            array, (scope, container) = np.asarray(value), graph
            self.name = scope.get_unique_variable_name("constant")
            array = array.astype(object) if array.dtype.kind == "U" else array
            container.initializers.append(numpy_helper.from_array(array, self.name))

    def apply(self, kind: str, *others, output: str | None = None, **attributes) -> Tensor:
        """Append a node of the ONNX operator `kind`; operands that are not tensors become constants."""
        scope, container = self.graph
        names = [t.name if isinstance(t, Tensor) else Tensor(self.graph, t).name for t in (self, *others)]
        result = output or scope.get_unique_variable_name(kind.lower())
        container.add_node(kind, names, result, **attributes)
        return Tensor(self.graph, result)

    def cast(self, to: str = "DOUBLE", **options) -> Tensor:
        """Append a conversion to another ONNX type."""
        return self.apply("Cast", to=TensorProto.DataType.Value(to), **options)

    __add__, __sub__, __mul__, __truediv__, __pow__, __matmul__, __gt__, __le__ = map(
        partial(partialmethod, apply), ("Add", "Sub", "Mul", "Div", "Pow", "MatMul", "Greater", "LessOrEqual")
    )


def joint_log_prob(nb, inputs: list, graph) -> Tensor:
    """(N, C) log p(class, row). One input has all columns, or each input has one."""
    # Cells that are one draw each have equal means and predictives; those of several draws are read below.
    reading = nb.posterior_.read(nb.estimate if isinstance(nb, bnb.GaussianNB) else "mean")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(reading)):
        raise ValueError("Some probabilities are 0 or do not exist, so there is no graph. Use a larger prior.")
    (block,), prior = reading.likelihoods, nb.posterior_.blocks[0]
    numbers = [] if isinstance(nb, bnb.CategoricalNB) else [Tensor(graph, v.full_name).cast() for v in inputs]
    first, *others = numbers or level_indicators(nb, inputs, graph)
    x = first.apply("Concat", *others, axis=1)
    if isinstance(nb, bnb.GaussianNB):
        x = x.apply("Unsqueeze", [1])
        if nb.estimate == "mean":
            density = (x - block.mu) ** 2.0 * (-0.5 / block.sigma2) - 0.5 * np.log(2 * np.pi * block.sigma2)
        else:
            density = log_student_t(x, block)
        terms = x.apply("IsNaN").apply("Where", 0.0, density).apply("ReduceSum", [2], keepdims=0)
    elif isinstance(nb, bnb.MultinomialNB) and nb.estimate == "predictive":
        words = log_rising(x.apply("Unsqueeze", [1]), Tensor(graph, prior.concentration))
        length = log_rising(x.apply("ReduceSum", [1]), Tensor(graph, prior.total().T))
        terms = words.apply("ReduceSum", [2], keepdims=0) - length
    elif isinstance(nb, bnb.BernoulliNB):  # A missing cell is neither absent nor present.
        threshold = 0.5 if nb.binarize is None else nb.binarize
        absent, present = (x <= threshold).cast(), (x > threshold).cast()
        terms = absent @ block.log_theta[:, 0::2].T + present @ block.log_theta[:, 1::2].T
    else:
        terms = x @ block.log_theta.T
    return terms + reading.log_class


def level_indicators(nb, inputs: list, graph) -> list[Tensor]:
    """For each input (N, L) of 1 where a cell is the level; missing and unknown cells are none of the levels."""
    pieces, columns = [], [nb.categories_] if len(inputs) == 1 else [[levels] for levels in nb.categories_]
    for variable, categories in zip(inputs, columns, strict=True):
        cells, is_text = Tensor(graph, variable.full_name), isinstance(variable.type, StringTensorType)
        if any(levels.dtype.kind not in ("U" if is_text else "if") for levels in categories):
            raise ValueError(f"Input {variable.onnx_name!r} and its levels differ in type. Use texts, or numbers.")
        levels = np.concatenate(categories).astype("U" if is_text else "f8")
        column = np.repeat(np.arange(len(categories)), [len(c) for c in categories])
        each = (cells if is_text else cells.cast()).apply("Gather", column, axis=1)
        pieces.append(each.apply("Equal", levels).cast())
    return pieces


def log_student_t(x: Tensor, block) -> Tensor:
    """(N, C, F) log Student t density, constant - exponent · log(1 + z²), without overflow of z²."""
    z = ((x - block.loc) / block.width).apply("Abs")
    top = z.apply("Max", 1.0)
    growth = top.apply("Log") * 2.0 + (top**-2.0 + (z / top) ** 2.0).apply("Log")
    return growth * -block.exponent + block.constant


def log_rising(x: Tensor, alpha: Tensor) -> Tensor:
    """Return log Γ(alpha + x) - log Γ(alpha), by Stirling's series at alpha + 8: ONNX has no log Γ."""
    low, product = alpha + 8.0, x / alpha + 1.0
    for i in range(1, 8):
        product = product * (x / (alpha + float(i)) + 1.0)
    high = low + x
    main = (low - 0.5) * (high / low).apply("Log") + x * (high.apply("Log") - 1.0)
    return main + stirling(high) - stirling(low) - product.apply("Log")


def stirling(z: Tensor) -> Tensor:
    """Return 1/(12 z) - 1/(360 z³) + …, the remainder of Stirling's formula, to 3e-13 for z from 8 on."""
    total = z * 0.0
    for coefficient in (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        total = total * z**-2.0 + coefficient
    return total / z


def infer_types(operator) -> None:
    """Set the types of labels and probabilities; raise ValueError for models that have no graph here."""
    nb, n = operator.raw_operator, operator.inputs[0].get_first_dimension()
    kind, unknown = nb.classes_.dtype.kind, getattr(nb, "handle_unknown", "ignore")
    if nb.estimate not in ("mean", "predictive") or kind not in "Ui" or unknown != "ignore":
        raise ValueError("Use estimate='mean' or 'predictive', text or integer classes, and handle_unknown='ignore'.")
    is_zipmap = operator.scope_inst.get_options(nb, {"zipmap": True})["zipmap"] is True  # which takes float32 only
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType) and not is_zipmap
    operator.outputs[0].set_type((StringTensorType if kind == "U" else Int64TensorType)([n]))
    operator.outputs[1].set_type((DoubleTensorType if is_double else FloatTensorType)([n, len(nb.classes_)]))


def convert(scope, operator, container) -> None:
    """Append the graph of a classifier."""
    nb, (label, probability) = operator.raw_operator, operator.outputs
    joint = joint_log_prob(nb, operator.inputs, (scope, container))
    best = joint.apply("ArgMax", axis=1, keepdims=0)
    Tensor(joint.graph, nb.classes_).apply("Gather", best, output=label.full_name)
    precision = "DOUBLE" if isinstance(probability.type, DoubleTensorType) else "FLOAT"
    joint.apply("Softmax", axis=1).cast(precision, output=probability.full_name)


def register() -> None:
    """Register the converters with skl2onnx."""
    for cls in (bnb.GaussianNB, bnb.CategoricalNB, bnb.BernoulliNB, bnb.MultinomialNB):
        options = {"zipmap": [True, False, "columns"], "nocl": [False]}
        update_registered_converter(cls, f"Bayesnb{cls.__name__}", infer_types, convert, options=options)
