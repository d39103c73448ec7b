"""What must be true of services, of what stands behind them, and of who may reach them."""
