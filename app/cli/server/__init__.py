"""`icetower serve`, `migrate`, `config` and `demo`: these run here and call no server."""
