"""`aioinformer watch`: informers whose notifications are printed."""
