"""The table format's rules. Pure: no I/O, no clock, no random numbers."""
