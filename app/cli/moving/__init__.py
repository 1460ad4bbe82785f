"""`icetower import` and `icetower export`: tables move in, and out."""
