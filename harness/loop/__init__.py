"""The commands of a learner's day: grade, watch, hint and compare."""
