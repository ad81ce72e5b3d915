"""How fast a GPU grows trees, against all processors of the same machine."""
