"""Judging the judges: how well metrics follow people, and how sure that is."""
