"""The past: a warehouse as it was at a time, what happened between two times, and tables brought back to one."""
