"""Reviews: requests that are answered and never stored."""
