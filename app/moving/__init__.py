"""Moving tables into a catalog and out of it, through the REST API."""
