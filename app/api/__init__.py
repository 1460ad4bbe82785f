"""HTTP. Parse, call one catalog function, shape the answer. Knows nothing of rows or files."""
