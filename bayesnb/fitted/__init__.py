"""State of a fitted classifier, and how its rows are counted, scored and left out."""
