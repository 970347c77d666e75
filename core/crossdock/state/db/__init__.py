"""The state's database: engine, schema, migrations, statements and locks."""
