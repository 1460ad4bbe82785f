"""Data types, and their values: in bounds, in JSON, in time, through transforms."""
