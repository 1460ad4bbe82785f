"""How answers look: JSON, tags, pages, gzip."""
