"""Timings beside scikit-learn: `python -m benchmarks`."""
