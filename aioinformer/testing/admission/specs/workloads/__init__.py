"""Validation of workloads, autoscalers and disruption budgets."""
