"""Contents of files for partners: from the payloads of operations to the bytes of one file, as a config declares it."""
