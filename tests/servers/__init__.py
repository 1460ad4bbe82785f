"""Real servers for tests, each started by the process that needs it."""
