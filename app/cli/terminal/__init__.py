"""What all commands share: declarations, arguments, output, and the connection to a server."""
