"""Table properties that change what the server does."""
