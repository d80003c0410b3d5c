"""What is judged: records, the schemas they come in, the files they are read from."""
