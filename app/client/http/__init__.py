"""HTTP as the client speaks it: requests, limits, and what can go wrong."""
