"""Commands of `python -m bayesnb`: from a CSV file to a report."""
