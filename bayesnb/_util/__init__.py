"""Functions that every layer uses: arguments, precision, progress, warnings, files, dask, pair counts."""
