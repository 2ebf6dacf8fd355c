"""From a wrong answer or an exception to help in a learner's words."""
