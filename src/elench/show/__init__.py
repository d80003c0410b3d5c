"""Tables, plots, evidence, cards and the HTML report."""
