"""The same REST API from outside."""
