"""Commands of `python -m bayesnb`: compare, fit, score and drift, for CSV and Parquet files."""
