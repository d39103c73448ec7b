"""Credentials: kubeconfig files, tokens, exec plugins and OpenID Connect."""
