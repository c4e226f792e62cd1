"""Databases: rows that a query gives, read in batches like those of a file."""
