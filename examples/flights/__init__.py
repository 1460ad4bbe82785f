"""A year of flights out of New York, from CSV to tables that three engines agree on (`make demo`)."""
