"""Asking people: design a human-evaluation study, run it, control its quality and analyse it."""
