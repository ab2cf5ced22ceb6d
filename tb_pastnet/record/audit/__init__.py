"""The freeze audit: did anything frozen move?"""
