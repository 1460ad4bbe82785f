"""What happened to a branch meanwhile, and what of it an operation cannot be put on top of."""
