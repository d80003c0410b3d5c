"""From ratings to conclusions: quality control, system scores, agreement, reports."""
