"""What every layer uses: arguments, precision, progress, warnings, files, dask, digests, pair counts."""
