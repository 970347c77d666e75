"""The command line: parse, call, show, exit code. Commands import what they need when they run, so help is quick."""
