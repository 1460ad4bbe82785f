"""`icetower table`: its commands, one file per subject."""
