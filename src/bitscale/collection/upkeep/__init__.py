"""Making, checking, copying and tidying a collection as a whole."""
