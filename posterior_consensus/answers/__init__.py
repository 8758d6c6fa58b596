"""Analyses of a posterior on partitions, one in each file."""
