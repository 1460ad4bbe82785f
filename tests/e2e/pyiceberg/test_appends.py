"""PyIceberg and DuckDB read what was appended by reference, and PyIceberg goes on writing."""
