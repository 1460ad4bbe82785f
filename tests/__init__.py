"""The proof: one folder for each kind of test."""
