"""Access: authentication, authorization, and the credentials that the server issues."""
