"""The `icetower` command."""
