"""The small models of elench: a folder per role with weights, configuration and card. Nothing here runs."""
