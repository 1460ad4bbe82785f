"""Table properties: which are known, what their values may be, and which value is in force."""
