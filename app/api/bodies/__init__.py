"""JSON of requests and responses, one file per resource. Wraps engine types, never copies them."""
