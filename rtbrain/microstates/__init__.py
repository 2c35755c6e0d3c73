"""Global field power, templates, their fitting, and the assignment of samples to them."""
