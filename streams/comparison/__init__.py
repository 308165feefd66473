"""Puts two pages side by side: rules, signals, evidence, differences."""
