"""How a table or a view changes: requirements, updates, and applying them."""
