"""How elench's own small models were made: `elench train NAME` runs `elench.train.NAME`."""
