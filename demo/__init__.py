"""Five small trainings on scikit-learn's handwritten digits, recorded for the PastNet tab."""
