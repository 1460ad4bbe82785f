"""What every use case is given: the server, one warehouse for one caller, tables and views as kinds, and places."""
