"""What runs on this machine instead of calling a server: `icetower serve`, `migrate`, `config` and `demo`."""
