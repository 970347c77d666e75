"""From config files to projects, with checks whose errors have the file, line and nearest name."""
