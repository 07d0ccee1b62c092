"""What a collection holds more than once, how alike it is, and a plan that leaves the decision to a person."""
