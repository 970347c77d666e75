"""What all legacy warehouses that export files have in common, wherever the files are; no connector itself."""
