"""Programs that show Icetower in use."""
