"""What all commands share: how they are declared, what people type, what they see, the connection to a server."""
