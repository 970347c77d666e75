"""Bytes and pages from elsewhere: SFTP, HTTP, a local folder; one door a library."""
