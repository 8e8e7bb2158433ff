"""Statistics of rows on several devices merge into those of one device."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow("starts processes that import JAX")

DEVICES = 8

# A process of its own: the number of devices is fixed when JAX starts.
PROGRAM = """
import json, re
from functools import partial, reduce
import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
import bayesnb as bnb
from bayesnb import kernels
from bayesnb.fitted import scoring
from bayesnb.fitted.counting import empty, finish
from bayesnb.model import Statistics
from bayesnb.estimators import *

assert jax.device_count() == {devices} and not jax.config.jax_enable_x64
mesh = jax.make_mesh(({devices},), ("rows",), axis_types=(AxisType.Auto,))
over_rows, everywhere = NamedSharding(mesh, PartitionSpec("rows")), NamedSharding(mesh, PartitionSpec())

rng, n = np.random.default_rng(0), 1024
y = rng.integers(0, 3, n)
levels = rng.integers(0, 5, (n, 4))
counts = rng.poisson(2.0, (n, 4))
reals = np.where(rng.random((n, 4)) < 0.1, np.nan, rng.normal(1e3, 1.0, (n, 4)))
weight = rng.integers(0, 4, n).astype(float)
CASES = [
    (GaussianNB(), reals),
    (NetworkNB(dict(zip("0123", [None, "0", ["0", "1"], None]))), levels),
    (MixedNB(categorical=[0], bernoulli=[1], poisson=[2, 3]), np.column_stack([levels[:, :2], counts[:, 2:]])),
]


def sharded(tree):
    # What has an entry a row is cut into parts; the rest every device has.
    put = lambda leaf: jax.device_put(leaf, over_rows if np.shape(leaf)[:1] == (n,) else everywhere)
    return jax.tree.map(put, tree)


def communication(compiled):
    #What passes between devices: operations, and the types of their results.
    kinds = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
    return re.findall(rf" = (.*) ({kinds})(?:-start)?[(]", compiled.as_text())


report = []
for nb, X in CASES:
    nb.fit(X, y, weight)
    rows = tuple(r.linear_rows() for r in nb.encoding_.rows(nb.fitted_.table(X)))
    with jax.enable_x64(True):
        x = tuple(r.piece(0, n, n) for r in rows)
        arguments = (empty(rows, 3), x, y.astype(np.int32), weight, np.zeros(n))
        one = finish(nb.encoding_, kernels.add_rows(*arguments)[0])
        many = sharded((x, *arguments[2:]))
        specs = jax.tree.map(lambda leaf: leaf.sharding.spec, many)

        @jax.jit
        @partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=PartitionSpec("rows"), check_vma=False)
        def of_each_device(*own):
            counted, _ = kernels.add_rows(empty(rows, 3), *own)
            return jax.tree.map(lambda leaf: leaf[None], counted)

        compiled = of_each_device.lower(*many).compile()
        parts = jax.tree.map(np.asarray, compiled(*many))
        parts = [jax.tree.map(lambda leaf: leaf[i], parts) for i in range({devices})]
        counted = finish(nb.encoding_, reduce(Statistics.merge, parts))

        reading = jax.tree.map(np.asarray, scoring.read(nb.encoding_, nb.posterior_, "mean").prepare(x))

        @jax.jit
        @partial(jax.shard_map, mesh=mesh, in_specs=specs[:1], out_specs=PartitionSpec("rows"), check_vma=False)
        def scores_of_each_device(own):
            return kernels.score(reading, own, scoring.log_proba)

        scored = scores_of_each_device.lower(many[0]).compile()
        scores = scored(many[0])
        difference = np.abs(np.asarray(scores) - nb.predict_log_proba(X, estimate="mean")).max()
    report.append(dict(
        name=type(nb).__name__,
        leaves=[[a.tolist(), b.tolist()] for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(counted))],
        communication=communication(compiled), n=n,
        scoring=communication(scored), parts=len(scores.sharding.device_set), difference=difference,
    ))
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report() -> list[dict]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    program = PROGRAM.replace("{devices}", str(DEVICES))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_statistics_are_those_of_one_device(report):
    for case in report:
        for one, many in case["leaves"]:
            np.testing.assert_allclose(many, one, rtol=1e-9, atol=1e-9, err_msg=case["name"])


def test_nothing_travels_while_rows_are_counted(report):
    for case in report:
        assert not case["communication"], case["name"]


def test_rows_are_scored_where_they_lie(report):
    for case in report:
        assert not case["scoring"], case["name"]
        assert case["parts"] == DEVICES
        assert case["difference"] < 1e-9, case["name"]
