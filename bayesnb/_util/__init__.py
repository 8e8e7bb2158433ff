"""What all floors use: arguments, precision, progress, warnings, files, dask, digests, pair counts."""
