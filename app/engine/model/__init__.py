"""What a table is, one file per noun of the spec."""
