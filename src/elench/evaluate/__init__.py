"""What scores are for: comparing systems, metrics against people, calibration, replication."""
