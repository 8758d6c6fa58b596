"""Analyses of a posterior on partitions, one subject in each file."""
