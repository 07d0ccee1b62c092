"""Pictures: files in, upright pixels in the form a model takes out, decoded in limited worker processes."""
