"""Files of the spec to engine values and back."""
