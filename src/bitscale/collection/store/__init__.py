"""The collection's database: its tables, its one writer, and the rows that are read and written."""
