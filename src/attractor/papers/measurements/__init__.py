"""Measurements that several claims share."""
