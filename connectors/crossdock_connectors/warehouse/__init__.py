"""The common parts of legacy warehouses that export files, wherever the files are. This is not a connector."""
