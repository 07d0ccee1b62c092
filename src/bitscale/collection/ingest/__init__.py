"""Pictures into a collection: what changed in its folders, encoding it, and a model where none was given."""
