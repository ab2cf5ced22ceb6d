"""The freeze audit: does what should stand still stand still?"""
