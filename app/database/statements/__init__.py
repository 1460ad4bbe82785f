"""SQL that several stores write alike."""
