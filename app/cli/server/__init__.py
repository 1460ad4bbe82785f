"""`icetower serve`, `migrate`, `rebuild`, `backup`, `config`, `demo`: they run here."""
