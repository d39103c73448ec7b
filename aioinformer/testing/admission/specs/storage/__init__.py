"""What must be true of volumes, wherever they stand, of claims for them and of the classes that they come from."""
