"""The papers' tables again: ours beside theirs, and plainly what cannot be replicated."""
