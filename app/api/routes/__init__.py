"""One file per resource of openapi.yaml."""
