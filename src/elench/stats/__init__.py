"""Correlation, agreement, significance, resampling and estimation: one room for all statistics."""
