"""Validation of built-in kinds with kube-apiserver's messages: one module for each family of kinds."""
