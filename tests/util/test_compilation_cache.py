"""The compilation cache on disk: what one process compiles, the next one reads."""

import os
import subprocess
import sys

import pytest

import bayesnb as bnb
from tests.raises import refused

PROGRAM = """
import sys
import jax.monitoring
import numpy as np

events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
import bayesnb as bnb

assert not [event for event in events if "cache" in event]  # nothing at import
before = bnb.GaussianNB().fit(np.arange(60_000.0).reshape(-1, 3), np.arange(20_000) % 2)  # JAX has compiled already
print(bnb.enable_cache(sys.argv[1]))
nb = bnb.GaussianNB().fit(np.arange(80_000.0).reshape(-1, 4), np.arange(20_000) % 2)
nb.predict(np.arange(80_000.0).reshape(-1, 4))
print(sum("cache_hits" in event for event in events), sum("cache_misses" in event for event in events))
"""


@pytest.mark.slow("three processes")
def test_a_second_process_compiles_nothing(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}

    def run():
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "kernels")]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.split()

    folder, hits, misses = run()
    assert folder == str(tmp_path / "kernels")
    assert int(hits) == 0 < int(misses)
    assert any((tmp_path / "kernels").iterdir())
    _, hits, misses_again = run()
    assert (hits, misses_again) == (misses, "0")


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("no folder")
    refused("file", bnb.enable_cache, tmp_path / "file", error=OSError)
