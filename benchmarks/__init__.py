"""Timings and comparisons with other packages: `python -m benchmarks` times bayesnb beside scikit-learn."""
