"""Helpers of every layer: arguments, precision, progress, warnings, files, dask, digests, pair counts."""
