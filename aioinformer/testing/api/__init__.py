"""What the API is made of: what is served, how requests are read, how answers and failures are worded."""
