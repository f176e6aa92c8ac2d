"""Sheets beside the tables: intervals over test images, and every score of every method."""
