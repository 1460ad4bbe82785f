"""What every use case is given: the server, and one warehouse for one caller."""
