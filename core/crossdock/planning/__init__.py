"""Records to operations: drafts, references, creates, updates and deletes."""
