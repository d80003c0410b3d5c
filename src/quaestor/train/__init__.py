"""How quaestor's own small models were made: `quaestor train NAME` runs `quaestor.train.NAME`."""
