"""What legacy warehouses that export files have in common, wherever the files are; not a connector itself."""
