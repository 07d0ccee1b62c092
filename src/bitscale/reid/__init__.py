"""Person re-identification: who is on a picture, seen by which cameras, and when."""
