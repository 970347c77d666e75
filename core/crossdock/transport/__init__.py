"""Bytes and pages from elsewhere: SFTP and HTTP; one door a library."""
