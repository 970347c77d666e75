"""Bytes and pages from elsewhere: SFTP, folders and HTTP; one door a library."""
