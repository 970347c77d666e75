"""The state's database: engine, schema, migrations, statements, run lease and errors."""
